// The steps, put together from quantize(), grouped_dbias() and a grouped GEMM. What is said here is which storage, scaling and
// accumulation each step takes, and where in the workspace its parts lie. A step is laid out by the same code when its
// workspace is sized and when it runs.

#include "device/linear/linear_steps.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "device/layout/check_rows.h"
#include "device/linear/linear_product.h"
#include "device/linear/linear_quantization.h"
#include "device/linear/prepared_step.h"
#include "device/recipes/call_checks.h"

namespace assay::device {
namespace {

// ---- Checks ----------------------------------------------------------------------------------------------------------

// Rows whose splits may still be missing: sizes do not depend on them.
Rows stand_in(const Rows& rows) {
  static constexpr std::int64_t kLater = 0;
  Rows made = rows;
  if (made.splits == nullptr && made.groups != 1) made.splits = &kLater;
  return made;
}

// Sizes: those of x, dy and w, in elements of eight bytes.
void check_sizes(const LinearCall& call, bool has_rows) {
  check_linear_config(call.config);
  const auto extent = [](std::int64_t value, const char* argument) {
    require(value >= 0, argument, value, "a value of at least 0");
    if (value > kMaxColumns) {
      throw NotSupported(std::string(argument) + " is " + std::to_string(value) + ": at most " +
                         std::to_string(kMaxColumns) + " are supported");
    }
  };
  extent(call.N, "N");
  extent(call.K, "K");
  require(call.rows_multiple >= 1, "rows_multiple", call.rows_multiple, "a value of at least 1");
  require(call.rows_multiple <= kMaxRows, "rows_multiple", call.rows_multiple, "at most " + std::to_string(kMaxRows));
  const auto addressable = [](std::int64_t rows, std::int64_t columns, const char* argument) {
    std::int64_t bytes;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, 8, &bytes)) {
      require(false, argument, columns, "a number of elements that fits int64");
    }
  };
  Rows rows = stand_in(call.rows);
  if (!has_rows) {
    rows.capacity = 0;
    if (rows.splits == nullptr) rows = {0, nullptr, 1};
  }
  check_rows(rows);
  const std::int64_t weight_rows = call.rows.groups * call.N;
  if (weight_rows > kMaxRows) {
    throw NotSupported("N is " + std::to_string(call.N) + " with " + std::to_string(call.rows.groups) +
                       " groups: at most " + std::to_string(kMaxRows) + " rows of weights are supported");
  }
  addressable(rows.capacity, call.N, "N");
  addressable(rows.capacity, call.K, "K");
  addressable(weight_rows, call.K, "K");
}

void check_splits(const Rows& rows) {
  if (rows.groups != 1) require_pointer(rows.splits, "rows.splits", alignof(std::int64_t));
}

// Two codes of nvfp4 share a byte along `extent`.
void check_packing(const LinearConfig& config, std::int64_t extent, const char* argument) {
  if (config.recipe != LinearRecipe::nvfp4 || extent % 2 == 0) return;
  require(false, argument, extent, "an even number, as nvfp4 packs two codes in a byte");
}

// What wgrad reads of x or dy: nvfp4 transforms it, and packs it along its rows.
void check_columnwise_rows(const LinearCall& call) {
  if (call.config.recipe != LinearRecipe::nvfp4) return;
  if (call.config.type != Format::bf16) {
    require(false, "config.type", format_name(call.config.type),
            "bf16 for wgrad with nvfp4, whose Hadamard transform takes no other");
  }
  check_packing(call.config, call.rows.capacity, "rows.capacity");
}

void check_matrix_pointer(const void* pointer, std::int64_t rows, std::int64_t columns, const char* argument,
                          std::uintptr_t alignment) {
  if (rows != 0 && columns != 0) require_pointer(pointer, argument, alignment);
}
constexpr std::uintptr_t kReadAlignment = 16;  // of what quantize() and the products read

void check_scale(const LinearCall& call, const float* scale, const char* argument) {
  if (call.config.recipe == LinearRecipe::tensor_delayed) require_pointer(scale, argument, alignof(float));
}

void check_amax(const LinearCall& call, const float* amax, const char* argument) {
  if (amax == nullptr) return;
  check_alignment(amax, argument, alignof(float));
  require(is_per_tensor(call.config.recipe), argument, "a pointer", "null for a recipe without a scale for the tensor");
}

// Of y, dx and dw: the library's kernels take 16 bytes for granted.
std::uintptr_t write_alignment(const LinearCall& call, Format type) {
  return call.path.path == GemmPath::cublaslt ? 16 : static_cast<std::uintptr_t>(wide_bytes(type));
}

std::string member(const char* of, const char* name) { return std::string(of) + "." + name; }

// A direction that is there: all its parts, and the recipe must have it.
void check_direction(const LinearCall& call, const QuantizedDirection& direction, const char* argument) {
  if (direction.data == nullptr) return;
  require(quantizes(call.config), member(argument, "data"), "a pointer", "null, as recipe none quantizes nothing");
  require_pointer(direction.data, member(argument, "data"), kReadAlignment);
  require_pointer(direction.scale_inv, member(argument, "scale_inv"), kReadAlignment);
  if (call.config.recipe == LinearRecipe::nvfp4) require_pointer(direction.amax, member(argument, "amax"), alignof(float));
}

void check_w(const LinearCall& call, const LinearWeights& w) {
  const std::int64_t each = call.N * call.K;
  if (w.list == nullptr) return check_matrix_pointer(w.data, call.rows.groups, each, "w.data", kReadAlignment);
  require(w.data == nullptr, "w.data", "a pointer", "null beside w.list");
  for (int t = 0; t < call.rows.groups; ++t) {
    if (each != 0) require_pointer(w.list[t], "w.list[" + std::to_string(t) + "]", kReadAlignment);
  }
}

// The weights of forward or dgrad: a cache, or w.
void check_weights(const LinearCall& call, const LinearWeights& w, const QuantizedStorage* cache, const float* scale,
                   bool columnwise) {
  check_packing(call.config, columnwise ? call.N : call.K, columnwise ? "N" : "K");
  if (cache == nullptr || !quantizes(call.config)) {
    check_w(call, w);
    return check_scale(call, scale, "w_scale");
  }
  const char* const name = columnwise ? "cache.columnwise" : "cache.rowwise";
  const QuantizedDirection& direction = columnwise ? cache->columnwise : cache->rowwise;
  if (direction.data == nullptr) {
    require(
        false, member(name, "data"), "null",
        columnwise ? "weights quantized columnwise, which dgrad reads" : "weights quantized rowwise, which forward reads");
  }
  check_direction(call, direction, name);
}

void check_bias(const LinearCall& call, const void* bias, const char* argument) {
  check_alignment(bias, argument, static_cast<std::uintptr_t>(wide_bytes(call.config.type)));
}

// ---- Parts of a step -------------------------------------------------------------------------------------------------

struct Step {
  const LinearCall& call;
  const LinearKernels& kernels;
  Parts parts;
  std::vector<QuantizeCall> quantizations;  // in order
  std::optional<DbiasCall> sums;
  std::optional<GroupedGemmCall> product;
  LinearConstants constants;
  std::int64_t* made_splits = nullptr;  // constants that the workspace holds
  float* made_one = nullptr;
  std::int64_t scratch_bytes = 0;  // of the one quantization or sum that needs most
  LinearReport report;
  bool sizing;

  // Without a workspace everything is laid out all the same: check_workspace() then tells what is missing.
  Step(const LinearCall& of, const LinearKernels& with, bool for_size)
      : call(of), kernels(with), parts(for_size ? nullptr : of.workspace), constants(of.constants), sizing(for_size) {}

  // Addresses where a call that is only sized has none yet.
  static void fill_in(GroupedGemmCall& call) {
    const auto fill = [](auto& pointer) {
      if (pointer == nullptr) pointer = Parts(nullptr).take(0);
    };
    for (GemmOperand* operand : {&call.x, &call.w, &call.dy}) {
      if (operand->data_list == nullptr) fill(operand->data);
    }
    if (call.d_list == nullptr) fill(call.d);
  }

  Rows rows() const { return stand_in(call.rows); }

  const float* one() {
    if (constants.one == nullptr) constants.one = made_one = parts.take<float>(sizeof(float));
    return constants.one;
  }

  Rows weight_rows() {
    const int groups = call.rows.groups;
    if (groups == 1) return {call.N, nullptr, 1};
    if (constants.weight_splits == nullptr)
      constants.weight_splits = made_splits = parts.take<std::int64_t>(std::int64_t{8} * groups);
    return {groups * call.N, constants.weight_splits, groups};
  }

  void quantize(const LinearSource& source, const QuantizedStorage& storage, LinearReport::Quantized& told) {
    const std::vector<QuantizeCall> calls = quantize_calls(call.config, source, storage, call.status);
    scratch_bytes = std::max(scratch_bytes, quantize_bytes(calls, kernels));
    quantizations.insert(quantizations.end(), calls.begin(), calls.end());
    told.calls = static_cast<int>(calls.size());
    told.rowwise = storage.rowwise.data != nullptr;
    told.columnwise = storage.columnwise.data != nullptr;
  }

  // Rows of x or dy, as one direction or both; recipe none reads them as they are.
  GemmOperand rows_operand(const LinearSource& source, const QuantizedStorage& storage, bool columnwise,
                           LinearReport::Quantized& told) {
    if (!quantizes(call.config))
      return operand_of(call.config, source.tensor, {const_cast<void*>(source.x), nullptr, nullptr}, false);
    quantize(source, storage, told);
    return operand_of(call.config, source.tensor, columnwise ? storage.columnwise : storage.rowwise, columnwise);
  }

  GemmOperand weight_operand(const LinearWeights& w, const QuantizedStorage* cache, const float* scale, bool columnwise) {
    if (!quantizes(call.config)) {
      GemmOperand operand =
          operand_of(call.config, LinearTensor::weight, {const_cast<void*>(w.data), nullptr, nullptr}, false);
      operand.data_list = w.list;
      return operand;
    }
    if (cache != nullptr)
      return operand_of(call.config, LinearTensor::weight, columnwise ? cache->columnwise : cache->rowwise, columnwise);
    LinearSource source = weight_source(w, scale);
    const QuantizedStorage storage =
        own_storage(LinearTensor::weight, source.rows.capacity, call.K, !columnwise, columnwise);
    quantize(source, storage, report.w);
    return operand_of(call.config, LinearTensor::weight, columnwise ? storage.columnwise : storage.rowwise, columnwise);
  }

  LinearSource weight_source(const LinearWeights& w, const float* scale) {
    LinearSource source;
    source.tensor = LinearTensor::weight;
    source.x = w.data;
    source.list = w.list;
    source.rows = w.list != nullptr ? Rows{call.rows.groups * call.N, nullptr, call.rows.groups} : weight_rows();
    source.rows_multiple = std::max<std::int64_t>(call.N, 1);
    source.columns = call.K;
    source.scale = scale;
    return source;
  }

  QuantizedStorage own_storage(LinearTensor tensor, std::int64_t capacity, std::int64_t columns, bool rowwise,
                               bool columnwise) {
    if (!quantizes(call.config)) return {};
    const std::int64_t bytes =
        quantized_storage_bytes(call.config, tensor, capacity, call.rows.groups, columns, rowwise, columnwise);
    return quantized_storage(parts.take(bytes), call.config, tensor, capacity, call.rows.groups, columns, rowwise,
                             columnwise);
  }

  // Rowwise in the workspace, columnwise where the caller wants it, if anywhere.
  QuantizedStorage rowwise_storage(LinearTensor tensor, std::int64_t columns, const QuantizedDirection& columnwise) {
    QuantizedStorage storage = own_storage(tensor, call.rows.capacity, columns, true, false);
    storage.columnwise = columnwise;
    if (columnwise.data != nullptr && is_per_tensor(call.config.recipe)) storage.rowwise.scale_inv = columnwise.scale_inv;
    return storage;
  }

  // The gradient of the bias beside a quantization of dy in these directions: which kernel sums it.
  void add_dbias(const void* dy, void* dbias, LinearSource* quantized, bool rowwise, bool columnwise) {
    if (dbias == nullptr) return;
    if (quantized != nullptr && fuses_dbias(call.config.recipe, rowwise, columnwise)) {
      quantized->dbias = dbias;
      report.dbias = DbiasRoute::fused;
      return;
    }
    DbiasCall separate;
    separate.x_type = separate.output_type = call.config.type;
    separate.x = dy;
    separate.rows = rows();
    separate.columns = call.N;
    separate.dbias = dbias;
    separate.status = call.status;
    scratch_bytes = std::max(scratch_bytes, kernels.dbias_bytes(separate));
    sums = separate;
    report.dbias = DbiasRoute::separate;
  }

  GroupedGemmCall& start_product(GemmLayout layout, Format d_type) {
    product = product_of(call.config, layout, d_type);
    product->rows = rows();
    product->rows_multiple = call.rows_multiple;
    product->N = call.N;
    product->K = call.K;
    product->status = call.status;
    return *product;
  }

  // Once all the rest is laid out.
  void lay_out_scratch() {
    void* const scratch = parts.take(scratch_bytes);
    for (QuantizeCall& each : quantizations) {
      each.workspace = scratch;
      each.workspace_bytes = scratch_bytes;
    }
    if (sums) {
      sums->workspace = scratch;
      sums->workspace_bytes = scratch_bytes;
    }
    if (product) {
      if (sizing) fill_in(*product);
      // Never where anything else lies: the library may keep things there from one call to the next.
      product->workspace_bytes = product_workspace_bytes(call.path, *product, kernels);
      product->workspace = parts.take(product->workspace_bytes);
    }
  }
};

LinearSource rows_source(const Step& step, LinearTensor tensor, const void* x, const float* scale, float* amax) {
  LinearSource source;
  source.tensor = tensor;
  source.x = x;
  source.rows = step.rows();
  source.rows_multiple = step.call.rows_multiple;
  source.columns = tensor == LinearTensor::gradient ? step.call.N : step.call.K;
  source.scale = scale;
  source.amax = amax;
  return source;
}

// ---- The steps -------------------------------------------------------------------------------------------------------

void lay_out(Step& step, const LinearForwardCall& call) {
  const QuantizedStorage x = step.rowwise_storage(LinearTensor::activation, call.K, call.x_columnwise);
  GroupedGemmCall& product = step.start_product(GemmLayout::TN, call.config.type);
  product.w = step.weight_operand(call.w, call.cache, call.w_scale, false);
  product.x = step.rows_operand(rows_source(step, LinearTensor::activation, call.x, call.x_scale, call.x_amax), x, false,
                                step.report.x);
  product.bias = call.bias;
  product.d = call.y;
}

void lay_out(Step& step, const LinearDgradCall& call) {
  const QuantizedStorage dy = step.rowwise_storage(LinearTensor::gradient, call.N, call.dy_columnwise);
  GroupedGemmCall& product = step.start_product(GemmLayout::NN, call.config.type);
  product.w = step.weight_operand(call.w, call.cache, call.w_scale, true);
  LinearSource source = rows_source(step, LinearTensor::gradient, call.dy, call.dy_scale, call.dy_amax);
  step.add_dbias(call.dy, call.dbias, &source, true, dy.columnwise.data != nullptr);
  product.dy = step.rows_operand(source, dy, false, step.report.dy);
  product.d = call.dx;
}

void lay_out(Step& step, const LinearWgradCall& call) {
  GroupedGemmCall& product = step.start_product(GemmLayout::NT, call.dw_type);
  const auto operand = [&](LinearTensor tensor, const void* x, const QuantizedDirection& before, const float* scale,
                           float* amax, void* dbias, LinearReport::Quantized& told) {
    if (before.data != nullptr) return operand_of(call.config, tensor, before, true);
    LinearSource source = rows_source(step, tensor, x, scale, amax);
    QuantizedStorage storage = step.own_storage(tensor, call.rows.capacity, source.columns, false, true);
    if (tensor == LinearTensor::gradient) step.add_dbias(x, dbias, &source, false, true);
    return step.rows_operand(source, storage, true, told);
  };
  product.dy =
      operand(LinearTensor::gradient, call.dy, call.dy_columnwise, call.dy_scale, call.dy_amax, call.dbias, step.report.dy);
  product.x = operand(LinearTensor::activation, call.x, call.x_columnwise, call.x_scale, nullptr, nullptr, step.report.x);
  if (call.accumulate) product.beta = step.one();
  product.d = call.dw;
  product.d_list = call.dw_list;
}

void lay_out(Step& step, const LinearGradientCall& call) {
  LinearSource source = rows_source(step, LinearTensor::gradient, call.dy, call.dy_scale, call.dy_amax);
  step.add_dbias(call.dy, call.dbias, &source, false, true);
  step.quantize(source, {{}, call.dy_columnwise}, step.report.dy);
}

void lay_out(Step& step, const LinearWeightsCall& call) {
  LinearSource source = step.weight_source(call.w, call.w_scale);
  source.amax = call.w_amax;
  source.noop = call.noop;
  step.quantize(source, call.cache, step.report.w);
}

void lay_out(Step& step, const LinearDbiasCall& call) { step.add_dbias(call.dy, call.dbias, nullptr, false, false); }

void check(const LinearForwardCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity;
  check_matrix_pointer(call.x, rows, call.K, "x", kReadAlignment);
  check_scale(call, call.x_scale, "x_scale");
  check_amax(call, call.x_amax, "x_amax");
  check_weights(call, call.w, call.cache, call.w_scale, false);
  check_bias(call, call.bias, "bias");
  check_direction(call, call.x_columnwise, "x_columnwise");
  if (call.x_columnwise.data != nullptr) check_columnwise_rows(call);
  check_matrix_pointer(call.y, rows, call.N, "y", write_alignment(call, call.config.type));
}

void check(const LinearDgradCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity;
  check_matrix_pointer(call.dy, rows, call.N, "dy", kReadAlignment);
  check_scale(call, call.dy_scale, "dy_scale");
  check_amax(call, call.dy_amax, "dy_amax");
  check_weights(call, call.w, call.cache, call.w_scale, true);
  check_direction(call, call.dy_columnwise, "dy_columnwise");
  if (call.dy_columnwise.data != nullptr) check_columnwise_rows(call);
  check_bias(call, call.dbias, "dbias");
  check_matrix_pointer(call.dx, rows, call.K, "dx", write_alignment(call, call.config.type));
}

void check_wgrad_types(const LinearWgradCall& call) {
  check_wide(call.dw_type, "dw_type");
  check_columnwise_rows(call);
}

void check(const LinearWgradCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity, each = call.N * call.K;
  const auto operand = [&](const void* x, const QuantizedDirection& before, std::int64_t columns, const float* scale,
                           const char* name) {
    const std::string direction = std::string(name) + "_columnwise";
    check_direction(call, before, direction.c_str());
    if (before.data != nullptr) return;
    check_matrix_pointer(x, rows, columns, name, kReadAlignment);
    check_scale(call, scale, (std::string(name) + "_scale").c_str());
  };
  operand(call.dy, call.dy_columnwise, call.N, call.dy_scale, "dy");
  operand(call.x, call.x_columnwise, call.K, call.x_scale, "x");
  check_amax(call, call.dy_amax, "dy_amax");
  const bool before = call.dy_columnwise.data != nullptr;
  require(!before || call.dy_amax == nullptr, "dy_amax", "a pointer", "null where dy was quantized before");
  require(!before || call.dbias == nullptr, "dbias", "a pointer", "null where dy was quantized before");
  check_bias(call, call.dbias, "dbias");
  const std::uintptr_t alignment = write_alignment(call, call.dw_type);
  if (call.dw_list == nullptr) return check_matrix_pointer(call.dw, call.rows.groups, each, "dw", alignment);
  require(call.dw == nullptr, "dw", "a pointer", "null beside dw_list");
  for (int t = 0; t < call.rows.groups; ++t) {
    if (each != 0) require_pointer(call.dw_list[t], "dw_list[" + std::to_string(t) + "]", alignment);
  }
}

void check(const LinearGradientCall& call) {
  check_splits(call.rows);
  check_matrix_pointer(call.dy, call.rows.capacity, call.N, "dy", kReadAlignment);
  check_scale(call, call.dy_scale, "dy_scale");
  check_amax(call, call.dy_amax, "dy_amax");
  require(quantizes(call.config), "config.recipe", "none", "a recipe that quantizes");
  require_pointer(call.dy_columnwise.data, "dy_columnwise.data", kReadAlignment);
  check_direction(call, call.dy_columnwise, "dy_columnwise");
  check_columnwise_rows(call);
  check_bias(call, call.dbias, "dbias");
}

void check(const LinearWeightsCall& call) {
  check_w(call, call.w);
  check_scale(call, call.w_scale, "w_scale");
  check_amax(call, call.w_amax, "w_amax");
  check_alignment(call.noop, "noop", alignof(float));
  const QuantizedDirection &rowwise = call.cache.rowwise, &columnwise = call.cache.columnwise;
  if (rowwise.data == nullptr && columnwise.data == nullptr) require_pointer(nullptr, "cache.rowwise.data");
  check_direction(call, rowwise, "cache.rowwise");
  check_direction(call, columnwise, "cache.columnwise");
  if (rowwise.data == nullptr || columnwise.data == nullptr) return;
  const auto shared = [](bool holds, const char* argument) {
    require(holds, argument, "another address", "that of cache.rowwise, as both directions share it");
  };
  shared(!is_per_tensor(call.config.recipe) || rowwise.scale_inv == columnwise.scale_inv, "cache.columnwise.scale_inv");
  shared(call.config.recipe != LinearRecipe::nvfp4 || rowwise.amax == columnwise.amax, "cache.columnwise.amax");
}

void check(const LinearDbiasCall& call) {
  check_splits(call.rows);
  check_matrix_pointer(call.dy, call.rows.capacity, call.N, "dy", kReadAlignment);
  if (call.N != 0) require_pointer(call.dbias, "dbias", static_cast<std::uintptr_t>(wide_bytes(call.config.type)));
}

// What can be checked without pointers, before anything is sized.
void check_shape(const LinearForwardCall& call) { check_packing(call.config, call.K, "K"); }
void check_shape(const LinearDgradCall& call) { check_packing(call.config, call.N, "N"); }
void check_shape(const LinearWgradCall& call) { check_wgrad_types(call); }
void check_shape(const LinearGradientCall& call) { check_columnwise_rows(call); }
void check_shape(const LinearWeightsCall& call) {
  if (call.cache.rowwise.data != nullptr) check_packing(call.config, call.K, "K");
  if (call.cache.columnwise.data != nullptr) check_packing(call.config, call.N, "N");
}
void check_shape(const LinearDbiasCall&) {}

template <class Call>
constexpr bool kHasRows = !std::is_same_v<Call, LinearWeightsCall>;

template <class Call>
bool has_nothing_to_do(const Call& call) {
  return call.rows.groups == 0 || (std::is_same_v<Call, LinearWeightsCall> && !quantizes(call.config));
}

template <class Call>
std::int64_t bytes_of_step(const Call& call, const LinearKernels& kernels) {
  check_sizes(call, kHasRows<Call>);
  check_shape(call);
  if (has_nothing_to_do(call)) return 0;
  Step step(call, kernels, true);
  lay_out(step, call);
  step.lay_out_scratch();
  return step.parts.bytes();
}

}  // namespace

struct PreparedStep::Work {
  Step step;
  std::optional<PreparedProduct> product;

  template <class Call>
  Work(const Call& call, const LinearKernels& kernels) : step(call, kernels, false) {
    lay_out(step, call);
    step.lay_out_scratch();
    check_workspace(call.workspace, call.workspace_bytes, step.parts.bytes());
    if (step.product) product.emplace(call.path, *step.product, kernels);
  }
};

PreparedStep::PreparedStep() = default;
PreparedStep::PreparedStep(PreparedStep&&) noexcept = default;
PreparedStep& PreparedStep::operator=(PreparedStep&&) noexcept = default;
PreparedStep::~PreparedStep() = default;

template <class Call>
PreparedStep::PreparedStep(const Call& call, const LinearKernels& kernels) {
  check_sizes(call, kHasRows<Call>);
  check_shape(call);
  if (has_nothing_to_do(call)) return;
  check_alignment(call.status, "status", alignof(std::uint32_t));
  check(call);
  work_ = std::make_unique<Work>(call, kernels);
}
template PreparedStep::PreparedStep(const LinearForwardCall&, const LinearKernels&);
template PreparedStep::PreparedStep(const LinearDgradCall&, const LinearKernels&);
template PreparedStep::PreparedStep(const LinearWgradCall&, const LinearKernels&);
template PreparedStep::PreparedStep(const LinearGradientCall&, const LinearKernels&);
template PreparedStep::PreparedStep(const LinearWeightsCall&, const LinearKernels&);
template PreparedStep::PreparedStep(const LinearDbiasCall&, const LinearKernels&);

LinearReport::Product PreparedStep::product() const {
  return work_ != nullptr && work_->product ? work_->product->report() : LinearReport::Product{};
}

LinearReport PreparedStep::launch(Stream stream) {
  if (work_ == nullptr) return {};
  Step& step = work_->step;
  const LinearKernels& kernels = step.kernels;
  if (step.made_splits != nullptr || step.made_one != nullptr) {
    kernels.make_constants(step.made_splits, step.call.rows.groups, step.call.N, step.made_one, stream);
  }
  for (const QuantizeCall& each : step.quantizations) kernels.quantize_with(each, stream);
  if (step.sums) kernels.sum_with(*step.sums, stream);
  if (work_->product) {
    work_->product->launch(stream);
    const GemmLayout layout = step.product->layout;
    LinearReport& report = step.report;
    (layout == GemmLayout::TN   ? report.forward
     : layout == GemmLayout::NN ? report.dgrad
                                : report.wgrad) = work_->product->report();
  }
  return step.report;
}

bool fuses_dbias(LinearRecipe recipe, bool rowwise, bool columnwise) {
  switch (recipe) {
    case LinearRecipe::block:
      return rowwise;
    case LinearRecipe::tensor_current:
    case LinearRecipe::tensor_delayed:
    case LinearRecipe::mxfp8:
      return rowwise || columnwise;
    case LinearRecipe::nvfp4:
    case LinearRecipe::none:
      break;
  }
  return false;
}

std::int64_t linear_forward_workspace_bytes(const LinearForwardCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}
std::int64_t linear_dgrad_workspace_bytes(const LinearDgradCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}
std::int64_t linear_wgrad_workspace_bytes(const LinearWgradCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}
std::int64_t linear_quantize_gradient_workspace_bytes(const LinearGradientCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}
std::int64_t linear_quantize_weights_workspace_bytes(const LinearWeightsCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}
std::int64_t linear_dbias_workspace_bytes(const LinearDbiasCall& call, const LinearKernels& kernels) {
  return bytes_of_step(call, kernels);
}

LinearReport linear_forward(const LinearForwardCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}
LinearReport linear_dgrad(const LinearDgradCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}
LinearReport linear_wgrad(const LinearWgradCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}
LinearReport linear_quantize_gradient(const LinearGradientCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}
LinearReport linear_quantize_weights(const LinearWeightsCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}
LinearReport linear_dbias(const LinearDbiasCall& call, Stream stream, const LinearKernels& kernels) {
  return PreparedStep(call, kernels).launch(stream);
}

}  // namespace assay::device
