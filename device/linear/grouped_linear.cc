#include "device/linear/grouped_linear.h"

#include <algorithm>
#include <utility>

#include "device/layout/check_rows.h"
#include "device/linear/linear_parts.h"
#include "device/linear/prepared_step.h"
#include "device/recipes/call_checks.h"

namespace assay::device {
namespace {

// Where forward takes its weights from: D1 and D4 of requirements.md, as reference/linear/microbatch.h has them.
WeightUse use_of(const GroupedLinearForward& call) {
  if (call.skip_weight_update != nullptr) return WeightUse::by_flag;
  if (!call.is_first_microbatch.has_value()) return WeightUse::fresh;
  return *call.is_first_microbatch ? WeightUse::renewed : WeightUse::kept;
}

bool adds_to_main_grad(const GroupedLinearOptions& options, const GroupedLinearForward& call) {
  if (!options.fuse_accumulation || options.overwrite_main_grad) return false;
  return call.skip_weight_update != nullptr || !call.is_first_microbatch.value_or(false);
}

void require_null(const void* pointer, const char* argument, const std::string& why) {
  require(pointer == nullptr, argument, "a pointer", "null, as " + why);
}

// What is never looked at while sizes are asked for.
template <class Pointer>
void stand_in(Pointer*& pointer) {
  pointer = Parts(nullptr).take<Pointer>(0);
}

void merge(LinearReport& into, const LinearReport& other) {
  const auto quantized = [](LinearReport::Quantized& a, const LinearReport::Quantized& b) {
    a.calls += b.calls;
    a.rowwise |= b.rowwise;
    a.columnwise |= b.columnwise;
  };
  const auto product = [](LinearReport::Product& a, const LinearReport::Product& b) {
    if (b.ran) a = b;
  };
  quantized(into.x, other.x);
  quantized(into.dy, other.dy);
  quantized(into.w, other.w);
  if (other.dbias != DbiasRoute::none) into.dbias = other.dbias;
  product(into.forward, other.forward);
  product(into.dgrad, other.dgrad);
  product(into.wgrad, other.wgrad);
}

}  // namespace

template <class Call>
Call GroupedLinear::start(const Rows& rows) const {
  Call call;
  call.config = options_.config;
  call.rows = rows;
  call.N = options_.N;
  call.K = options_.K;
  call.path = options_.path;
  call.rows_multiple = options_.rows_multiple;
  // Sizes leave out what workspaces_ holds; give_path() tells a product where it is.
  stand_in(call.path.settings.library_workspace);
  stand_in(call.path.settings.group_arrays);
  call.constants = constants_;
  call.status = options_.status;
  return call;
}

template <class Call>
void GroupedLinear::give(Call& call, const Workspace& workspace) const {
  call.workspace = workspace.memory;
  call.workspace_bytes = workspace.bytes;
}

void GroupedLinear::give_path(LinearPath& path, GemmLayout layout, Stream stream) {
  if (path.path == GemmPath::cublaslt) workspaces_.give(path.settings, stream, layout, options_.groups);
}

// ---- Memory ----------------------------------------------------------------------------------------------------------

GroupedLinear::GroupedLinear(const GroupedLinearOptions& options, const LinearKernels& kernels, const MemorySource& memory)
    : options_(options),
      architecture_(options.config.architecture),
      kernels_(kernels),
      memory_(memory),
      workspaces_(memory, options.path.settings.workspace_bytes) {
  options_.config.architecture = architecture_;
  const GroupedLinearOptions& o = options_;
  require(o.groups >= 0, "options.groups", o.groups, "a value of at least 0");
  require(o.groups <= kMaxGroups, "options.groups", o.groups, "at most " + std::to_string(kMaxGroups));
  require(o.rows_capacity >= 0, "options.rows_capacity", o.rows_capacity, "a value of at least 0");
  require(o.microbatches >= 1, "options.microbatches", o.microbatches, "a value of at least 1");
  const std::string own = "the module has its own";
  require_null(o.path.settings.library_workspace, "options.path.settings.library_workspace", own);
  require_null(o.path.settings.group_arrays, "options.path.settings.group_arrays", own);
  require(o.wgrad || !o.defer_wgrad, "options.defer_wgrad", "true", "false without options.wgrad");
  require(o.cache_weights || o.fresh_weights, "options.fresh_weights", "false", "true without options.cache_weights");
  check_alignment(o.status, "options.status", alignof(std::uint32_t));
  if (o.wgrad) check_wide(o.dw_type, "options.dw_type");
  if (o.path.path == GemmPath::cublaslt) kernels_.prepare();
  microbatches_.resize(static_cast<std::size_t>(o.microbatches));

  lay_out_lasting(nullptr);
  lasting_ = memory_.allocate(std::max<std::int64_t>(lasting_bytes_, 1));
  try {
    lay_out_lasting(lasting_);
    const std::vector<std::int64_t> splits(static_cast<std::size_t>(o.groups), o.N);
    const float one = 1;
    if (!splits.empty())
      memory_.upload(const_cast<std::int64_t*>(constants_.weight_splits), splits.data(), std::int64_t{8} * o.groups);
    memory_.upload(const_cast<float*>(constants_.one), &one, sizeof one);
    lay_out_rows(nullptr, o.rows_capacity);
    of_rows_ = memory_.allocate(std::max<std::int64_t>(row_bytes_, 1));
    lay_out_rows(of_rows_, o.rows_capacity);
    if (o.path.path == GemmPath::cublaslt) {
      workspaces_.reserve_library(GemmLayout::TN);
      if (o.dgrad) workspaces_.reserve_library(GemmLayout::NN);
      if (o.wgrad) workspaces_.reserve_library(GemmLayout::NT);
    }
  } catch (...) {
    memory_.release(of_rows_);
    memory_.release(lasting_);
    throw;
  }
}

GroupedLinear::~GroupedLinear() {
  memory_.release(of_rows_);
  memory_.release(lasting_);
}

void GroupedLinear::lay_out_lasting(void* memory) {
  const GroupedLinearOptions& o = options_;
  Parts parts(memory);
  constants_.weight_splits = parts.take<std::int64_t>(std::int64_t{8} * o.groups);
  constants_.one = parts.take<float>(sizeof(float));
  const std::int64_t bias_bytes = 2 * o.groups * o.N;  // bf16 and f16
  bias_ = parts.take(bias_bytes);
  dbias_ = parts.take(bias_bytes);

  const Rows no_rows{0, constants_.weight_splits, o.groups};
  LinearWeightsCall weights = start<LinearWeightsCall>(no_rows);
  const auto storage = [&](bool wanted) -> QuantizedStorage {
    if (!wanted || !quantizes(o.config)) return {};
    const std::int64_t rows = o.groups * o.N;
    void* const at =
        parts.take(quantized_storage_bytes(o.config, LinearTensor::weight, rows, o.groups, o.K, true, o.dgrad));
    return quantized_storage(at, o.config, LinearTensor::weight, rows, o.groups, o.K, true, o.dgrad);
  };
  cache_ = storage(o.cache_weights);
  fresh_ = storage(o.fresh_weights);
  weights.cache = o.cache_weights ? cache_ : fresh_;
  weights_space_.bytes = linear_quantize_weights_workspace_bytes(weights, kernels_);
  weights_space_.memory = parts.take(weights_space_.bytes);
  lasting_bytes_ = parts.bytes();
}

void GroupedLinear::lay_out_rows(void* memory, std::int64_t capacity) {
  const GroupedLinearOptions& o = options_;
  const int groups = o.groups;
  Parts parts(memory);
  // Any splits: sizes do not depend on them.
  const Rows rows{capacity, constants_.weight_splits, groups};
  const bool quantized = quantizes(o.config);
  const auto columnwise = [&](LinearTensor tensor, std::int64_t columns) -> QuantizedDirection {
    if (!quantized) return {};
    void* const at = parts.take(quantized_storage_bytes(o.config, tensor, capacity, groups, columns, false, true));
    return quantized_storage(at, o.config, tensor, capacity, groups, columns, false, true).columnwise;
  };
  for (Microbatch& microbatch : microbatches_) {
    microbatch.splits = parts.take<std::int64_t>(std::int64_t{8} * groups);
    if (!o.wgrad) continue;
    microbatch.x = columnwise(LinearTensor::activation, o.K);
    if (!o.defer_wgrad) continue;
    microbatch.dy = columnwise(LinearTensor::gradient, o.N);
    if (quantized) continue;
    microbatch.x_copy = parts.take(2 * capacity * o.K);
    microbatch.dy_copy = parts.take(2 * capacity * o.N);
  }
  dy_ = o.wgrad && !o.defer_wgrad ? columnwise(LinearTensor::gradient, o.N) : QuantizedDirection{};

  const auto room = [&](Workspace& workspace, std::int64_t bytes) { workspace = {parts.take(bytes), bytes}; };
  const auto larger = [](Workspace& workspace, std::int64_t bytes) { workspace.bytes = std::max(workspace.bytes, bytes); };
  forward_space_ = dgrad_space_ = wgrad_space_ = gradient_space_ = {};
  const QuantizedStorage any_weights = o.cache_weights ? cache_ : fresh_;
  const QuantizedDirection x = microbatches_.front().x, dy = o.defer_wgrad ? microbatches_.front().dy : dy_;

  LinearForwardCall forward = start<LinearForwardCall>(rows);
  forward.cache = &any_weights;
  stand_in(forward.bias);
  larger(forward_space_, linear_forward_workspace_bytes(forward, kernels_));
  forward.x_columnwise = x;
  larger(forward_space_, linear_forward_workspace_bytes(forward, kernels_));
  room(forward_space_, forward_space_.bytes);

  if (o.dgrad) {
    LinearDgradCall dgrad = start<LinearDgradCall>(rows);
    dgrad.cache = &any_weights;
    stand_in(dgrad.dbias);
    larger(dgrad_space_, linear_dgrad_workspace_bytes(dgrad, kernels_));
    dgrad.dy_columnwise = dy;
    larger(dgrad_space_, linear_dgrad_workspace_bytes(dgrad, kernels_));
    room(dgrad_space_, dgrad_space_.bytes);
  }
  if (o.wgrad) {
    LinearWgradCall wgrad = start<LinearWgradCall>(rows);
    wgrad.dw_type = o.dw_type;
    wgrad.accumulate = true;
    wgrad.x_columnwise = x;
    wgrad.dy_columnwise = dy;
    larger(wgrad_space_, linear_wgrad_workspace_bytes(wgrad, kernels_));
    room(wgrad_space_, wgrad_space_.bytes);
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
  room(gradient_space_, gradient_space_.bytes);
  row_bytes_ = parts.bytes();
}

void GroupedLinear::reserve(std::int64_t rows) {
  if (rows <= options_.rows_capacity) return;
  require(in_flight() == 0, "microbatches in flight", in_flight(), "0 before memory is made anew");
  const std::int64_t old_bytes = row_bytes_;
  void* made = nullptr;
  try {
    lay_out_rows(nullptr, rows);
    made = memory_.allocate(std::max<std::int64_t>(row_bytes_, 1));
  } catch (...) {
    lay_out_rows(of_rows_, options_.rows_capacity);
    row_bytes_ = old_bytes;
    throw;
  }
  memory_.release(std::exchange(of_rows_, made));
  options_.rows_capacity = rows;
  lay_out_rows(of_rows_, rows);
  algorithms_.clear();
}

void GroupedLinear::reserve_setup(Stream stream, int captures) {
  require(captures >= 0, "captures", captures, "a value of at least 0");
  if (options_.path.path == GemmPath::cublaslt) workspaces_.reserve_setup(stream, options_.groups, captures);
}

// ---- Forward ---------------------------------------------------------------------------------------------------------

int GroupedLinear::in_flight() const {
  return static_cast<int>(std::count_if(microbatches_.begin(), microbatches_.end(),
                                        [](const Microbatch& m) { return m.state != State::free; }));
}

const CublasLtAlgorithm* GroupedLinear::known_algorithm(const AlgorithmKey& key, const CublasLtAlgorithm* pinned) const {
  if (pinned != nullptr || options_.path.path != GemmPath::cublaslt) return pinned;
  const auto found = algorithms_.find(key);
  return found == algorithms_.end() ? nullptr : &found->second;
}

void GroupedLinear::learn_algorithm(const AlgorithmKey& key, const LinearReport::Product& product) {
  if (!product.ran || product.path != GemmPath::cublaslt) return;
  constexpr std::size_t kMost = 256;  // a caller with ever new row counts asks the heuristic each time
  if (algorithms_.size() < kMost) algorithms_.emplace(key, product.algorithm);
}

void GroupedLinear::check_forward(const GroupedLinearForward& call, WeightUse use) const {
  const GroupedLinearOptions& o = options_;
  require(call.rows.groups == o.groups, "rows.groups", call.rows.groups,
          "the groups of this layer, " + std::to_string(o.groups));
  require(call.rows.capacity <= o.rows_capacity, "rows.capacity", call.rows.capacity,
          "at most the " + std::to_string(o.rows_capacity) + " that there is room for: reserve()");
  if (o.groups != 1) require_pointer(call.rows.splits, "rows.splits", alignof(std::int64_t));
  check_rows(call.rows);
  if (call.bias_list != nullptr) require_null(call.bias, "bias", "there is bias_list");
  for (int t = 0; call.bias_list != nullptr && t < o.groups && o.N != 0; ++t) {
    require_pointer(call.bias_list[t], "bias_list[" + std::to_string(t) + "]", 2);
  }
  check_alignment(call.skip_weight_update, "skip_weight_update", alignof(float));
  if (!quantizes(o.config)) return;
  if (use == WeightUse::fresh) {
    require(o.fresh_weights, "is_first_microbatch", "not given", "true or false, as options.fresh_weights is off");
  } else {
    const char* const argument = use == WeightUse::by_flag ? "skip_weight_update" : "is_first_microbatch";
    require(o.cache_weights, argument, "given", "nothing, as options.cache_weights is off");
  }
  if (use == WeightUse::kept) {
    require(cache_filled_, "is_first_microbatch", "false", "true before it: no weights are cached yet");
    require(call.w_amax == nullptr, "w_amax", "a pointer", "null where w is not quantized");
  }
}

LinearWeightsCall GroupedLinear::weights_call(const GroupedLinearForward& call, WeightUse use) const {
  LinearWeightsCall weights = start<LinearWeightsCall>(call.rows);
  weights.w = call.w;
  weights.w_scale = call.w_scale;
  weights.w_amax = call.w_amax;
  weights.noop = use == WeightUse::by_flag ? call.skip_weight_update : nullptr;
  weights.cache = use == WeightUse::fresh ? fresh_ : cache_;
  give(weights, weights_space_);
  return weights;
}

GroupedLinearForwardResult GroupedLinear::forward(const GroupedLinearForward& call, Stream stream) {
  const GroupedLinearOptions& o = options_;
  GroupedLinearForwardResult result;
  result.weights = use_of(call);
  check_forward(call, result.weights);
  const bool keeps = call.keep && (o.dgrad || o.wgrad);
  const auto place =
      std::find_if(microbatches_.begin(), microbatches_.end(), [](const Microbatch& m) { return m.state == State::free; });
  if (keeps && place == microbatches_.end()) {
    require(false, "microbatches in flight", in_flight(),
            "fewer than options.microbatches, " + std::to_string(o.microbatches));
  }

  LinearForwardCall step = start<LinearForwardCall>(call.rows);
  step.x = call.x;
  step.w = call.w;
  step.cache = !quantizes(o.config) ? nullptr : result.weights == WeightUse::fresh ? &fresh_ : &cache_;
  step.bias = call.bias_list != nullptr ? bias_ : call.bias;
  step.x_scale = call.x_scale;
  step.x_amax = call.x_amax;
  if (keeps && o.wgrad) step.x_columnwise = place->x;
  step.y = call.y;
  give(step, forward_space_);
  give_path(step.path, GemmLayout::TN, stream);
  const AlgorithmKey key{GemmLayout::TN, call.rows.capacity, false, call.w.list != nullptr};
  step.path.forward.algorithm = known_algorithm(key, o.path.forward.algorithm);
  PreparedStep product(step, kernels_), quantization;
  LinearWeightsCall weights;
  const bool renews = quantizes(o.config) && result.weights != WeightUse::kept;
  if (renews) {
    weights = weights_call(call, result.weights);
    quantization = PreparedStep(weights, kernels_);
  }

  if (renews) merge(result.report, quantization.launch(stream));
  if (renews && result.weights != WeightUse::fresh) cache_filled_ = true;
  const bool has_splits = call.rows.splits != nullptr;
  if (keeps && has_splits) kernels_.copy(place->splits, call.rows.splits, std::int64_t{8} * o.groups, stream);
  if (call.bias_list != nullptr) kernels_.gather(call.bias_list, o.groups, 2 * o.N, bias_, stream);
  merge(result.report, product.launch(stream));
  learn_algorithm(key, result.report.forward);
  if (!keeps) return result;

  place->state = State::forwarded;
  place->rows = call.rows;
  if (has_splits) place->rows.splits = place->splits;
  place->weights = result.weights;
  place->accumulate = adds_to_main_grad(o, call);
  if (!quantizes(o.config)) {
    place->x_given = call.x;
    place->w = call.w;
    if (call.w.list != nullptr) place->w_list.assign(call.w.list, call.w.list + o.groups);
  }
  result.microbatch = static_cast<int>(place - microbatches_.begin());
  return result;
}

// ---- Backward --------------------------------------------------------------------------------------------------------

GroupedLinear::Microbatch& GroupedLinear::at(int microbatch, State state) {
  const bool there = microbatch >= 0 && microbatch < options_.microbatches &&
                     microbatches_[static_cast<std::size_t>(microbatch)].state == state;
  require(there, "microbatch", microbatch, "one whose forward has run and whose backward has not");
  return microbatches_[static_cast<std::size_t>(microbatch)];
}

GroupedLinearBackwardResult GroupedLinear::backward(const GroupedLinearBackward& call, Stream stream) {
  const GroupedLinearOptions& o = options_;
  Microbatch& of = at(call.microbatch, State::forwarded);
  const bool wants_dw = call.dw != nullptr || call.dw_list != nullptr, wants_dx = call.dx != nullptr;
  if (!o.dgrad) require_null(call.dx, "dx", "options.dgrad is off");
  if (!o.wgrad) {
    require_null(call.dw, "dw", "options.wgrad is off");
    require_null(call.dw_list, "dw_list", "options.wgrad is off");
  }
  if (call.dw_list != nullptr) require_null(call.dw, "dw", "there is dw_list");
  if (call.dbias_list != nullptr) require_null(call.dbias, "dbias", "there is dbias_list");
  for (int t = 0; call.dbias_list != nullptr && t < o.groups && o.N != 0; ++t) {
    require_pointer(call.dbias_list[t], "dbias_list[" + std::to_string(t) + "]", 2);
  }
  void* const dbias = call.dbias_list != nullptr ? dbias_ : call.dbias;
  const bool quantized = quantizes(o.config);
  const QuantizedDirection dy_columnwise = !quantized || !wants_dw ? QuantizedDirection{} : o.defer_wgrad ? of.dy : dy_;

  GroupedLinearBackwardResult result;
  result.accumulated = wants_dw && of.accumulate;
  result.deferred = wants_dw && o.defer_wgrad;

  LinearDgradCall dgrad = start<LinearDgradCall>(of.rows);
  LinearGradientCall gradient = start<LinearGradientCall>(of.rows);
  LinearDbiasCall sums = start<LinearDbiasCall>(of.rows);
  const AlgorithmKey key{GemmLayout::NN, of.rows.capacity, false, of.w.list != nullptr};
  PreparedStep first;  // reads dy
  if (wants_dx) {
    dgrad.dy = call.dy;
    dgrad.w = of.w;
    if (of.w.list != nullptr) dgrad.w.list = of.w_list.data();
    dgrad.cache = !quantized ? nullptr : of.weights == WeightUse::fresh ? &fresh_ : &cache_;
    dgrad.dy_scale = call.dy_scale;
    dgrad.dy_amax = call.dy_amax;
    dgrad.dy_columnwise = dy_columnwise;
    dgrad.dbias = dbias;
    dgrad.dx = call.dx;
    dgrad.path.dgrad.algorithm = known_algorithm(key, o.path.dgrad.algorithm);
    give(dgrad, dgrad_space_);
    give_path(dgrad.path, GemmLayout::NN, stream);
    first = PreparedStep(dgrad, kernels_);
  } else if (wants_dw && quantized) {
    gradient.dy = call.dy;
    gradient.dy_scale = call.dy_scale;
    gradient.dy_amax = call.dy_amax;
    gradient.dy_columnwise = dy_columnwise;
    gradient.dbias = dbias;
    give(gradient, gradient_space_);
    first = PreparedStep(gradient, kernels_);
  } else if (dbias != nullptr) {
    sums.dy = call.dy;
    sums.dbias = dbias;
    give(sums, gradient_space_);
    first = PreparedStep(sums, kernels_);
  }

  // What is put off is checked all the same, as if it were done now.
  const bool copies = result.deferred && !quantized;
  if (copies && of.rows.capacity != 0 && o.N != 0) require_pointer(call.dy, "dy", 16);
  LinearWgradCall wgrad;
  PreparedStep second;
  AlgorithmKey wgrad_key{GemmLayout::NT, of.rows.capacity, of.accumulate, call.dw_list != nullptr};
  if (wants_dw) {
    wgrad = wgrad_call(of, dy_columnwise, copies ? of.dy_copy : call.dy, copies ? of.x_copy : of.x_given);
    wgrad.dw = call.dw;
    wgrad.dw_list = call.dw_list;
    if (!result.deferred) give_path(wgrad.path, GemmLayout::NT, stream);
    wgrad.path.wgrad.algorithm = known_algorithm(wgrad_key, o.path.wgrad.algorithm);
    second = PreparedStep(wgrad, kernels_);
    learn_algorithm(wgrad_key, second.product());
  }

  merge(result.report, first.launch(stream));
  if (wants_dx) learn_algorithm(key, result.report.dgrad);
  if (call.dbias_list != nullptr) kernels_.scatter(dbias_, call.dbias_list, o.groups, 2 * o.N, stream);
  if (!result.deferred) {
    merge(result.report, second.launch(stream));
    of.state = State::free;
    return result;
  }
  if (copies) {
    kernels_.copy(of.x_copy, of.x_given, 2 * of.rows.capacity * o.K, stream);
    kernels_.copy(of.dy_copy, call.dy, 2 * of.rows.capacity * o.N, stream);
  }
  of.dw = call.dw;
  of.dw_list.clear();
  if (call.dw_list != nullptr) of.dw_list.assign(call.dw_list, call.dw_list + o.groups);
  of.dw_is_list = call.dw_list != nullptr;
  of.state = State::deferred;
  deferred_.push_back(call.microbatch);
  return result;
}

LinearWgradCall GroupedLinear::wgrad_call(const Microbatch& of, const QuantizedDirection& dy, const void* plain_dy,
                                          const void* plain_x) const {
  LinearWgradCall call = start<LinearWgradCall>(of.rows);
  call.x_columnwise = of.x;
  call.dy_columnwise = dy;
  if (!quantizes(options_.config)) {
    call.x = plain_x;
    call.dy = plain_dy;
  }
  call.dw_type = options_.dw_type;
  call.accumulate = of.accumulate;
  give(call, wgrad_space_);
  return call;
}

LinearReport GroupedLinear::backward_dw(Stream stream) {
  require(!deferred_.empty(), "pending", pending(), "a weight gradient that was put off and not yet carried out");
  Microbatch& of = microbatches_[static_cast<std::size_t>(deferred_.front())];
  LinearWgradCall call = wgrad_call(of, of.dy, of.dy_copy, of.x_copy);
  call.dw = of.dw;
  if (of.dw_is_list) call.dw_list = of.dw_list.data();
  const AlgorithmKey key{GemmLayout::NT, of.rows.capacity, of.accumulate, of.dw_is_list};
  give_path(call.path, GemmLayout::NT, stream);
  call.path.wgrad.algorithm = known_algorithm(key, options_.path.wgrad.algorithm);
  const LinearReport report = linear_wgrad(call, stream, kernels_);
  of.state = State::free;  // only now: work that could not be done is not lost
  deferred_.pop_front();
  return report;
}

void GroupedLinear::drop(int microbatch) { at(microbatch, State::forwarded).state = State::free; }

}  // namespace assay::device
