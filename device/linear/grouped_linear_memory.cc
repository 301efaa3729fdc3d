// The memory of the module GroupedLinear. Three blocks, each laid out by one function that also counts it:
//
//   lasting   constants | bias, dbias for lists | weight cache | per microbatch: fresh columnwise weights
//   rows      per microbatch: splits, x, and if deferred: dy, copies | if deferred: wgrad's workspace
//   scratch   forward   fresh rowwise weights | max(quantization of w, forward's workspace)
//             backward  dy columnwise         | max(dgrad's, wgrad's, gradient's workspace)       the two overlap
//
// The scratch belongs to the module or, with a pool, to all modules of the stream.

#include <algorithm>
#include <utility>
#include <vector>

#include "device/linear/grouped_linear.h"
#include "device/linear/grouped_linear_start.h"
#include "device/support/call_checks.h"

namespace assay::device {

GroupedLinear::GroupedLinear(const GroupedLinearOptions& options, const LinearKernels& kernels, const MemorySource& memory)
    : options_(options),
      architecture_(options.config.architecture),
      kernels_(kernels),
      memory_(memory),
      device_(options.pool != nullptr ? options.pool->device() : memory.current_device()) {
  options_.config.architecture = architecture_;
  check_options();
  const DeviceScope on(memory_, device_);
  const bool by_library = options_.path.path == GemmPath::cublaslt;
  if (options_.pool != nullptr) {
    options_.path.settings.workspace_bytes = options_.pool->library_bytes();
  } else {
    workspaces_.emplace(memory, options_.path.settings.workspace_bytes);
  }
  if (by_library) kernels_.prepare();
  const GroupedLinearOptions& o = options_;
  microbatches_.resize(static_cast<std::size_t>(o.microbatches));

  lasting_ = allocate(lay_out_lasting(nullptr));
  lay_out_lasting(lasting_.data());
  const std::vector<std::int64_t> splits(static_cast<std::size_t>(o.groups), o.N);
  const float one = 1;
  if (!splits.empty())
    memory_.upload(const_cast<std::int64_t*>(constants_.weight_splits), splits.data(), std::int64_t{8} * o.groups);
  memory_.upload(const_cast<float*>(constants_.one), &one, sizeof one);

  size_spaces(o.rows_capacity);
  of_rows_ = allocate(lay_out_rows(nullptr, o.rows_capacity));
  lay_out_rows(of_rows_.data(), o.rows_capacity);
  const std::int64_t scratch_bytes = lay_out_scratch(nullptr, o.rows_capacity);
  if (o.pool != nullptr) {
    o.pool->reserve_scratch(scratch_bytes);
  } else {
    own_scratch_ = allocate(scratch_bytes);
  }
  if (!by_library) return;
  const Stream stream = o.pool != nullptr ? o.pool->stream() : nullptr;
  workspaces().reserve_library(GemmLayout::TN, stream);
  if (o.dgrad) workspaces().reserve_library(GemmLayout::NN, stream);
  if (o.wgrad) workspaces().reserve_library(GemmLayout::NT, stream);
}

GroupedLinear::~GroupedLinear() = default;

void GroupedLinear::check_options() const {
  const GroupedLinearOptions& o = options_;
  require(o.groups >= 0, "options.groups", o.groups, "a value of at least 0");
  require(o.groups <= kMaxGroups, "options.groups", o.groups, "at most " + std::to_string(kMaxGroups));
  require(o.rows_capacity >= 0, "options.rows_capacity", o.rows_capacity, "a value of at least 0");
  require(o.microbatches >= 1, "options.microbatches", o.microbatches, "a value of at least 1");
  const std::string own = o.pool != nullptr ? "the pool has one" : "the module has its own";
  require_null(o.path.settings.library_workspace, "options.path.settings.library_workspace", own);
  require_null(o.path.settings.group_arrays, "options.path.settings.group_arrays", own);
  require(o.wgrad || !o.defer_wgrad, "options.defer_wgrad", "true", "false without options.wgrad");
  require(o.cache_weights || o.fresh_weights, "options.fresh_weights", "false", "true without options.cache_weights");
  check_alignment(o.status, "options.status", alignof(std::uint32_t));
  if (o.wgrad) check_wide(o.dw_type, "options.dw_type");
}

DeviceMemory GroupedLinear::allocate(std::int64_t bytes) const {
  if (options_.pool == nullptr) return DeviceMemory(memory_, {}, nullptr, bytes);
  return DeviceMemory(memory_, options_.pool->allocator(), options_.pool->stream(), bytes);
}

std::int64_t GroupedLinear::memory_bytes() const {
  return lasting_.bytes() + of_rows_.bytes() + own_scratch_.bytes() + (workspaces_ ? workspaces_->allocated_bytes() : 0);
}

std::int64_t GroupedLinear::lay_out_lasting(void* memory) {
  const GroupedLinearOptions& o = options_;
  Parts parts(memory);
  constants_.weight_splits = parts.take<std::int64_t>(std::int64_t{8} * o.groups);
  constants_.one = parts.take<float>(sizeof(float));
  const std::int64_t bias_bytes = 2 * o.groups * o.N;  // bf16 and f16
  bias_ = parts.take(bias_bytes);
  dbias_ = parts.take(bias_bytes);

  const auto storage = [&](bool rowwise, bool columnwise) -> QuantizedStorage {
    const std::int64_t rows = o.groups * o.N;
    void* const at =
        parts.take(quantized_storage_bytes(o.config, LinearTensor::weight, rows, o.groups, o.K, rowwise, columnwise));
    return quantized_storage(at, o.config, LinearTensor::weight, rows, o.groups, o.K, rowwise, columnwise);
  };
  if (!quantizes(o.config)) return parts.bytes();
  if (o.cache_weights) cache_ = storage(true, o.dgrad);
  for (Microbatch& microbatch : microbatches_) {
    if (o.fresh_weights && o.dgrad) microbatch.fresh.columnwise = storage(false, true).columnwise;
  }
  return parts.bytes();
}

QuantizedDirection GroupedLinear::take_columnwise(Parts& parts, LinearTensor tensor, std::int64_t capacity,
                                                  std::int64_t columns) const {
  const GroupedLinearOptions& o = options_;
  if (!quantizes(o.config)) return {};
  const std::int64_t alignment = column_alignment();
  void* const at = parts.take(quantized_storage_bytes(o.config, tensor, capacity, o.groups, columns, false, true, alignment));
  return quantized_storage(at, o.config, tensor, capacity, o.groups, columns, false, true, alignment).columnwise;
}

std::int64_t GroupedLinear::lay_out_rows(void* memory, std::int64_t capacity) {
  const GroupedLinearOptions& o = options_;
  const int groups = o.groups;
  Parts parts(memory);
  const bool quantized = quantizes(o.config);
  for (Microbatch& microbatch : microbatches_) {
    microbatch.splits = parts.take<std::int64_t>(std::int64_t{8} * groups);
    if (!o.wgrad) continue;
    microbatch.x = take_columnwise(parts, LinearTensor::activation, capacity, o.K);
    if (!o.defer_wgrad) continue;
    microbatch.dy = take_columnwise(parts, LinearTensor::gradient, capacity, o.N);
    if (quantized) continue;
    microbatch.x_copy = parts.take(2 * capacity * o.K);
    microbatch.dy_copy = parts.take(2 * capacity * o.N);
  }
  if (o.defer_wgrad) wgrad_space_.memory = parts.take(wgrad_space_.bytes);
  return parts.bytes();
}

std::int64_t GroupedLinear::lay_out_scratch(void* memory, std::int64_t capacity) {
  const GroupedLinearOptions& o = options_;
  const bool quantized = quantizes(o.config);
  Parts forward(memory), backward(memory);
  if (quantized && o.fresh_weights) {
    const std::int64_t rows = o.groups * o.N;
    void* const at = forward.take(quantized_storage_bytes(o.config, LinearTensor::weight, rows, o.groups, o.K, true, false));
    fresh_ = quantized_storage(at, o.config, LinearTensor::weight, rows, o.groups, o.K, true, false);
    for (Microbatch& microbatch : microbatches_) {
      QuantizedStorage& fresh = microbatch.fresh;
      fresh.rowwise = fresh_.rowwise;
      if (!o.dgrad) continue;
      // One scale, or one amax, serves both directions, and dgrad reads it too.
      if (is_per_tensor(o.config.recipe)) fresh.rowwise.scale_inv = fresh.columnwise.scale_inv;
      if (o.config.recipe == LinearRecipe::nvfp4) fresh.rowwise.amax = fresh.columnwise.amax;
    }
  }
  weights_space_.memory = forward_space_.memory = forward.take(std::max(weights_space_.bytes, forward_space_.bytes));

  if (o.wgrad && !o.defer_wgrad) dy_ = take_columnwise(backward, LinearTensor::gradient, capacity, o.N);
  const std::int64_t wgrad_bytes = o.defer_wgrad ? 0 : wgrad_space_.bytes;
  void* const space = backward.take(std::max({dgrad_space_.bytes, gradient_space_.bytes, wgrad_bytes}));
  dgrad_space_.memory = gradient_space_.memory = space;
  if (!o.defer_wgrad) wgrad_space_.memory = space;
  return std::max(forward.bytes(), backward.bytes());
}

// The workspace of each step: the maximum over all ways in which it may be called.
void GroupedLinear::size_spaces(std::int64_t capacity) {
  const GroupedLinearOptions& o = options_;
  const bool quantized = quantizes(o.config);
  const Rows rows{capacity, constants_.weight_splits, o.groups};  // any splits: sizes do not depend on them
  const auto larger = [](Workspace& workspace, std::int64_t bytes) { workspace.bytes = std::max(workspace.bytes, bytes); };
  weights_space_ = forward_space_ = dgrad_space_ = wgrad_space_ = gradient_space_ = {};
  lay_out_rows(nullptr, capacity);  // addresses that are passed on, not read
  lay_out_scratch(nullptr, capacity);
  const QuantizedStorage any_weights = o.cache_weights ? cache_ : microbatches_.front().fresh;
  const QuantizedDirection x = microbatches_.front().x, dy = o.defer_wgrad ? microbatches_.front().dy : dy_;

  LinearWeightsCall weights = start<LinearWeightsCall>(Rows{0, constants_.weight_splits, o.groups});
  for (const QuantizedStorage* storage : {&any_weights, static_cast<const QuantizedStorage*>(&fresh_)}) {
    if (storage->rowwise.data == nullptr) continue;
    weights.cache = *storage;
    larger(weights_space_, linear_quantize_weights_workspace_bytes(weights, kernels_));
  }
  LinearForwardCall forward = start<LinearForwardCall>(rows);
  forward.cache = &any_weights;
  stand_in(forward.bias);
  larger(forward_space_, linear_forward_workspace_bytes(forward, kernels_));
  forward.x_columnwise = x;
  larger(forward_space_, linear_forward_workspace_bytes(forward, kernels_));
  if (o.dgrad) {
    LinearDgradCall dgrad = start<LinearDgradCall>(rows);
    dgrad.cache = &any_weights;
    stand_in(dgrad.dbias);
    larger(dgrad_space_, linear_dgrad_workspace_bytes(dgrad, kernels_));
    dgrad.dy_columnwise = dy;
    larger(dgrad_space_, linear_dgrad_workspace_bytes(dgrad, kernels_));
  }
  if (o.wgrad) {
    LinearWgradCall wgrad = start<LinearWgradCall>(rows);
    wgrad.dw_type = o.dw_type;
    wgrad.accumulate = true;
    wgrad.x_columnwise = x;
    wgrad.dy_columnwise = dy;
    larger(wgrad_space_, linear_wgrad_workspace_bytes(wgrad, kernels_));
  }
  if (o.wgrad && quantized) {
    LinearGradientCall gradient = start<LinearGradientCall>(rows);
    gradient.dy_columnwise = dy;
    stand_in(gradient.dbias);
    larger(gradient_space_, linear_quantize_gradient_workspace_bytes(gradient, kernels_));
  }
  LinearDbiasCall dbias = start<LinearDbiasCall>(rows);
  stand_in(dbias.dbias);
  larger(gradient_space_, linear_dbias_workspace_bytes(dbias, kernels_));
}

void GroupedLinear::reserve(std::int64_t rows) {
  if (rows <= options_.rows_capacity) return;
  require(in_flight() == 0, "microbatches in flight", in_flight(), "0 before memory is made anew");
  const DeviceScope on(memory_, device_);
  DeviceMemory of_rows, own_scratch;
  try {
    size_spaces(rows);
    of_rows = allocate(lay_out_rows(nullptr, rows));
    const std::int64_t scratch_bytes = lay_out_scratch(nullptr, rows);
    if (options_.pool != nullptr) {
      options_.pool->reserve_scratch(scratch_bytes);
    } else {
      own_scratch = allocate(scratch_bytes);
    }
  } catch (...) {
    size_spaces(options_.rows_capacity);
    lay_out_rows(of_rows_.data(), options_.rows_capacity);
    scratch_ = nullptr;
    throw;
  }
  of_rows_ = std::move(of_rows);
  own_scratch_ = std::move(own_scratch);
  options_.rows_capacity = rows;
  lay_out_rows(of_rows_.data(), rows);
  scratch_ = nullptr;
  algorithms_.clear();
}

void GroupedLinear::reserve_setup(Stream stream, int captures) {
  require(captures >= 0, "captures", captures, "a value of at least 0");
  const DeviceScope on = begin(stream);
  if (options_.path.path == GemmPath::cublaslt) workspaces().reserve_setup(stream, options_.groups, captures);
}

DeviceScope GroupedLinear::begin(Stream stream) {
  struct Checked {
    Checked(const GroupedLinear& module, Stream given) {
      const DeviceScope on(module.memory_, module.device_);
      const int of_stream = module.memory_.device_of(given);
      require(of_stream == module.device_, "stream", "of device " + std::to_string(of_stream),
              "one of device " + std::to_string(module.device_) + ", the module's");
      const LinearPool* const pool = module.options_.pool;
      require(pool == nullptr || pool->stream() == given, "stream", "another one", "the stream of options.pool");
    }
  };
  const Checked checked(*this, stream);
  void* const scratch = options_.pool != nullptr ? options_.pool->scratch() : own_scratch_.data();
  if (scratch != scratch_) lay_out_scratch(scratch, options_.rows_capacity);
  scratch_ = scratch;
  return DeviceScope(memory_, device_);
}

}  // namespace assay::device
