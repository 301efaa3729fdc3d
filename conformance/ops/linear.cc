// Ops `linear_forward`, `linear_dgrad` and `linear_wgrad` (schema 2).

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "conformance/ops/grouped_gemm.h"
#include "conformance/ops/op.h"
#include "conformance/ops/words.h"
#include "reference/layout/sizes.h"
#include "reference/linear/deferred_wgrad.h"
#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"

namespace assay::conformance {
namespace {

struct Parsed {
  std::string architecture;
  std::vector<std::int64_t> splits;
  LinearConfig config;
  LinearShape shape;
  bool bias = false;  // the layer has one: its gradient is asked for in backward
  const AccumulationPlan* plan = nullptr;  // in place of the architecture's
  std::int64_t groups() const { return static_cast<std::int64_t>(splits.size()); }
};

// `activation`: the tensor [R, width] that tells R.
void parse(const Request& request, const char* activation, Parsed& parsed) {
  LinearConfig& config = parsed.config;
  const std::string recipe = request.text("recipe");
  const auto named = linear_recipe_named(recipe);
  if (!named) throw InvalidArgument("attribute recipe", "'" + recipe + "'", "none, tensor_current, tensor_delayed, block, mxfp8 or nvfp4");
  config.recipe = *named;
  config.type = request.format_or("itype", Format::bf16);
  const Format code = config.recipe == LinearRecipe::nvfp4 ? Format::e2m1 : Format::e4m3;
  config.forward_code = request.format_or("otype", code);
  config.backward_code = request.format_or("grad_otype", code);
  config.force_pow_2_scales = request.flag("pow2", config.powers_of_two());
  config.amax_epsilon = static_cast<float>(request.real_or("eps", 0));
  const std::int64_t mask = request.integer_or("sign_mask", 0);
  require(mask >= 0 && mask <= 0xffff, "attribute sign_mask", mask, "0 to 65535");
  config.hadamard_sign_mask = static_cast<std::uint16_t>(mask);
  const bool sm100 = config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4;
  parsed.architecture = request.text_or("arch", sm100 ? "sm100" : "sm90");
  config.architecture = parsed.architecture;
  if (const std::string plan = request.text_or("plan", ""); !plan.empty()) {
    parsed.plan = find_accumulation_plan(plan);
    if (parsed.plan == nullptr) throw NotSupported("no accumulation plan is named '" + plan + "'");
  }
  parsed.bias = request.flag("bias");
  parsed.splits = request.splits();
  LinearShape& shape = parsed.shape;
  shape.splits = parsed.splits;
  shape.N = request.integer("N");
  shape.K = request.integer("K");
  require(shape.N >= 0, "attribute N", shape.N, "0 or more");
  require(shape.K >= 0, "attribute K", shape.K, "0 or more");
  const TensorView& matrix = request.input(activation, config.type);
  const std::int64_t width = activation[0] == 'x' ? shape.K : shape.N;
  if (matrix.shape.size() != 2 || matrix.shape[1] != width) {
    throw InvalidArgument(std::string("in/") + activation, describe(matrix), "a matrix with " + std::to_string(width) + " columns");
  }
  shape.rows = matrix.shape[0];
  // No product of these sizes below can pass int64, in bits either.
  for (const std::int64_t rows : {shape.rows, checked_product(parsed.groups(), shape.N, "attribute N", shape.N)}) {
    for (const std::int64_t columns : {shape.N, shape.K}) {
      const std::int64_t elements = checked_product(rows, std::max<std::int64_t>(columns, 1), "attribute K", shape.K);
      checked_product(elements, 64, "attribute K", shape.K);
    }
  }
}

// grouped_gemm() under another plan than the architecture's.
Multiply under(const AccumulationPlan& plan, Layer layer) {
  return [&plan, layer](const GroupedGemmProblem& problem, void* d) {
    GroupedGemmProblem planned = problem;
    planned.plan = &plan;
    layer == Layer::fast ? grouped_gemm(planned, d) : scalar::grouped_gemm(planned, d);
  };
}

alignas(16) std::byte nowhere[16];  // stands for an output that is neither read nor written

// `see` in place of the product, with the plan of the request.
Multiply planned(const Parsed& parsed, const Multiply& see) {
  return [&parsed, &see](const GroupedGemmProblem& problem, void* d) {
    GroupedGemmProblem planned = problem;
    if (parsed.plan != nullptr) planned.plan = parsed.plan;
    see(planned, d);
  };
}

template <void (*visit)(const Request&, const Multiply&)>
std::vector<CertifiedBound> bounds(const Request& request, const std::string& unit) {
  std::vector<CertifiedBound> made;
  visit(request, [&](const GroupedGemmProblem& problem, void*) { made = bounds_of_product(problem, unit); });
  return made;
}

Numerics numerics_under(const Parsed& parsed, GemmLayout layout) {
  const AccumulationPlan& plan = linear_plan(parsed.config, parsed.shape, layout, parsed.plan);
  return {std::string(plan.unit), std::string(plan.name)};
}

const void* data(const TensorView* tensor) { return tensor == nullptr ? nullptr : tensor->data; }

const float* scales(const Request& request, const Parsed& parsed, const char* name) {
  if (parsed.config.recipe != LinearRecipe::tensor_delayed) return nullptr;
  return floats(&request.input(name, Format::f32, parsed.groups()));
}

struct Steps {
  decltype(&linear_forward) forward;
  decltype(&linear_dgrad) dgrad;
  decltype(&linear_wgrad) wgrad;
  decltype(&linear_dbias) dbias;
  decltype(&linear_quantize_weights) quantize_weights;
};
constexpr Steps kFast{linear_forward, linear_dgrad, linear_wgrad, linear_dbias, linear_quantize_weights};
constexpr Steps kScalar{scalar::linear_forward, scalar::linear_dgrad, scalar::linear_wgrad, scalar::linear_dbias,
                        scalar::linear_quantize_weights};
const Steps& steps_of(Layer layer) { return layer == Layer::fast ? kFast : kScalar; }

// Where the gradient of the bias goes, if it is requested.
void* dbias_output(const Request& request, const Parsed& parsed) {
  return request.output("dbias", parsed.config.type, parsed.groups() * parsed.shape.N);
}

// With a skip flag the layer has a weight cache: in/w_rowwise_data, in/w_rowwise_scale_inv and, for nvfp4, in/w_rowwise_amax
// are what it holds before the step, and the outputs of the same names what it holds after it.
struct ForwardCall {
  Parsed parsed;
  LinearForward operands;
  const float* noop = nullptr;
  LinearWeightCache before;
  bool cached() const { return noop != nullptr; }
};

// What a cache of this layer holds, by the name of its tensor.
struct CacheMember {
  const char* name;
  std::vector<std::byte> QuantizedTensor::* bytes;
};
constexpr std::array<CacheMember, 2> kCacheMembers = {{{"w_rowwise_data", &QuantizedTensor::rowwise_data},
                                                       {"w_rowwise_scale_inv", &QuantizedTensor::rowwise_scale_inv}}};
constexpr const char* kCacheAmax = "w_rowwise_amax";

void parse_cache(const Request& request, ForwardCall& call) {
  const Parsed& parsed = call.parsed;
  LinearWeightCache& cache = call.before;
  const bool nvfp4 = parsed.config.recipe == LinearRecipe::nvfp4;
  cache.columnwise = false;
  cache.filled = true;
  cache.recipe = parsed.config.recipe;
  cache.code = nvfp4 ? Format::e2m1 : parsed.config.forward_code;
  cache.groups = parsed.groups();
  cache.N = parsed.shape.N;
  cache.K = parsed.shape.K;
  for (const CacheMember& member : kCacheMembers) {
    const TensorView& tensor = request.input(member.name);
    const auto* from = static_cast<const std::byte*>(tensor.data);
    (cache.*member.bytes).assign(from, from + tensor.bytes);
  }
  if (nvfp4) {
    const auto* amax = floats(&request.input(kCacheAmax, Format::f32, parsed.groups()));
    cache.amax.assign(amax, amax + parsed.groups());
  }
  check_weight_cache(parsed.config, parsed.shape, cache);
}

void parse_forward(const Request& request, ForwardCall& call) {
  parse(request, "x", call.parsed);
  const Parsed& parsed = call.parsed;
  const std::int64_t weights = parsed.groups() * parsed.shape.N * parsed.shape.K;
  call.operands.x = request.input("x").data;
  call.operands.w = request.input("w", parsed.config.type, weights).data;
  call.operands.bias = data(request.find_input("bias", parsed.config.type, parsed.groups() * parsed.shape.N));
  call.operands.x_scale = scales(request, parsed, "x_scale");
  call.operands.w_scale = scales(request, parsed, "w_scale");
  if (const TensorView* noop = request.find_input("noop", Format::f32, 1)) {
    require(parsed.config.recipe != LinearRecipe::none, "in/noop", "given", "none with recipe none, which keeps no weights");
    call.noop = floats(noop);
    const bool swizzled = parsed.config.recipe == LinearRecipe::mxfp8 || parsed.config.recipe == LinearRecipe::nvfp4;
    require((scale_layout_of(request) == ScaleLayout::swizzled) == swizzled, "attribute scale_layout",
            request.text_or("scale_layout", "compact"), swizzled ? "swizzled: the order of the cached scales" : "compact");
    parse_cache(request, call);
  }
  request.refuse_unknown();
}

std::vector<OutputSpec> forward_outputs(const Request& request) {
  ForwardCall call;
  parse_forward(request, call);
  std::vector<OutputSpec> specs{{"y", call.parsed.config.type, {call.parsed.shape.rows, call.parsed.shape.N}, true}};
  if (!call.cached()) return specs;
  for (const CacheMember& member : kCacheMembers) {
    const TensorView& tensor = request.input(member.name);
    specs.push_back({member.name, tensor.type, tensor.shape});
  }
  if (call.parsed.config.recipe == LinearRecipe::nvfp4) specs.push_back({kCacheAmax, Format::f32, {call.parsed.groups()}});
  return specs;
}

// The cache's scales; padding of the compact ones (recipe block) is not written.
void store_scales(const Parsed& parsed, std::span<const std::byte> from, std::byte* to) {
  if (parsed.config.recipe != LinearRecipe::block) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  const ScaleShape shape = scale_shape(Recipe::block_128x128, Direction::rowwise, parsed.shape.N, parsed.shape.K);
  for (std::int64_t row = 0; row < parsed.groups() * shape.rows; ++row) {
    const std::int64_t at = row * shape.columns * static_cast<std::int64_t>(sizeof(float));
    std::memcpy(to + at, from.data() + at, static_cast<std::size_t>(shape.used_columns) * sizeof(float));
  }
}

void forward_answer(const Request& request, Layer layer) {
  ForwardCall call;
  parse_forward(request, call);
  const Parsed& parsed = call.parsed;
  const Steps& steps = steps_of(layer);
  // Every output is looked at before the first is written.
  void* y = request.output("y", parsed.config.type, parsed.shape.rows * parsed.shape.N);
  LinearWeightCache& cache = call.before;
  std::vector<std::pair<void*, std::span<const std::byte>>> kept;
  if (call.cached()) {
    // Padding of compact scales stays what it was, as in a cache that is written in place.
    steps.quantize_weights(parsed.config, parsed.shape, call.operands.w, call.operands.w_scale, call.noop, cache);
    call.operands.cache = &cache;
    for (const CacheMember& member : kCacheMembers) {
      const TensorView& like = request.input(member.name);
      kept.emplace_back(request.output(member.name, like.type, like.elements()), cache.*member.bytes);
    }
    if (!cache.amax.empty()) {
      kept.emplace_back(request.output(kCacheAmax, Format::f32, parsed.groups()), std::as_bytes(std::span(cache.amax)));
    }
  }
  if (y != nullptr && parsed.plan != nullptr) {
    linear_forward_by(under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, y);
  } else if (y != nullptr) {
    steps.forward(parsed.config, parsed.shape, call.operands, y);
  }
  for (const auto& [to, bytes] : kept) {
    if (to == nullptr || bytes.empty()) continue;
    if (bytes.data() == cache.rowwise_scale_inv.data()) {
      store_scales(parsed, bytes, static_cast<std::byte*>(to));
    } else {
      std::memcpy(to, bytes.data(), bytes.size());
    }
  }
}

void forward_visit(const Request& request, const Multiply& see) {
  ForwardCall call;
  parse_forward(request, call);
  const Parsed& parsed = call.parsed;
  if (call.cached()) {
    linear_quantize_weights(parsed.config, parsed.shape, call.operands.w, call.operands.w_scale, call.noop, call.before);
    call.operands.cache = &call.before;
  }
  linear_forward_by(planned(parsed, see), parsed.config, parsed.shape, call.operands, nowhere);
}

Numerics forward_numerics(const Request& request) {
  ForwardCall call;
  parse_forward(request, call);
  return numerics_under(call.parsed, GemmLayout::TN);
}

struct DgradCall {
  Parsed parsed;
  LinearDgrad operands;
};

void parse_dgrad(const Request& request, DgradCall& call) {
  parse(request, "dy", call.parsed);
  const Parsed& parsed = call.parsed;
  call.operands.dy = request.input("dy").data;
  call.operands.w = request.input("w", parsed.config.type, parsed.groups() * parsed.shape.N * parsed.shape.K).data;
  call.operands.dy_scale = scales(request, parsed, "dy_scale");
  call.operands.w_scale = scales(request, parsed, "w_scale");
  request.refuse_unknown();
}

std::vector<OutputSpec> dgrad_outputs(const Request& request) {
  DgradCall call;
  parse_dgrad(request, call);
  const Parsed& parsed = call.parsed;
  std::vector<OutputSpec> specs{{"dx", parsed.config.type, {parsed.shape.rows, parsed.shape.K}, true}};
  if (parsed.bias) specs.push_back({"dbias", parsed.config.type, {parsed.groups(), parsed.shape.N}});
  return specs;
}

void dgrad_answer(const Request& request, Layer layer) {
  DgradCall call;
  parse_dgrad(request, call);
  const Parsed& parsed = call.parsed;
  const Steps& steps = steps_of(layer);
  void* dx = request.output("dx", parsed.config.type, parsed.shape.rows * parsed.shape.K);
  void* dbias = dbias_output(request, parsed);
  if (dx != nullptr && parsed.plan != nullptr) {
    linear_dgrad_by(under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, dx);
  } else if (dx != nullptr) {
    steps.dgrad(parsed.config, parsed.shape, call.operands, dx);
  }
  if (dbias != nullptr) steps.dbias(parsed.config, parsed.shape, call.operands.dy, dbias);
}

void dgrad_visit(const Request& request, const Multiply& see) {
  DgradCall call;
  parse_dgrad(request, call);
  linear_dgrad_by(planned(call.parsed, see), call.parsed.config, call.parsed.shape, call.operands, nowhere);
}

Numerics dgrad_numerics(const Request& request) {
  DgradCall call;
  parse_dgrad(request, call);
  return numerics_under(call.parsed, GemmLayout::NN);
}

struct WgradCall {
  Parsed parsed;
  LinearWgrad operands;
  bool deferred = false;
  const void* before = nullptr;
  std::int64_t elements() const { return parsed.groups() * parsed.shape.N * parsed.shape.K; }
};

void parse_wgrad(const Request& request, WgradCall& call) {
  parse(request, "dy", call.parsed);
  const Parsed& parsed = call.parsed;
  call.operands.dy = request.input("dy").data;
  const TensorView& x = request.input("x", parsed.config.type);
  if (x.shape.size() != 2 || x.shape[0] != parsed.shape.rows || x.shape[1] != parsed.shape.K) {
    throw InvalidArgument("in/x", describe(x), "a matrix of the rows of dy and " + std::to_string(parsed.shape.K) + " columns");
  }
  call.operands.x = x.data;
  call.operands.dy_scale = scales(request, parsed, "dy_scale");
  call.operands.x_scale = scales(request, parsed, "x_scale");
  call.operands.dw_type = request.format_or("dtype_d", Format::f32);
  call.operands.accumulate = request.flag("accumulate");
  call.deferred = request.flag("deferred");
  if (call.operands.accumulate) call.before = request.input("main_grad", call.operands.dw_type, call.elements()).data;
  request.refuse_unknown();
}

std::vector<OutputSpec> wgrad_outputs(const Request& request) {
  WgradCall call;
  parse_wgrad(request, call);
  const Parsed& parsed = call.parsed;
  std::vector<OutputSpec> specs{{"dw", call.operands.dw_type, {parsed.groups() * parsed.shape.N, parsed.shape.K}}};
  if (parsed.bias) specs.push_back({"dbias", parsed.config.type, {parsed.groups(), parsed.shape.N}});
  return specs;
}

// The gradient is computed in a buffer of its own, which starts as `main_grad`, so that an error leaves the output alone.
void wgrad_answer(const Request& request, Layer layer) {
  WgradCall call;
  parse_wgrad(request, call);
  const Parsed& parsed = call.parsed;
  const Steps& steps = steps_of(layer);
  void* dw = request.output("dw", call.operands.dw_type, call.elements());
  void* dbias = dbias_output(request, parsed);
  if (dw != nullptr) {
    std::vector<std::byte> made(static_cast<std::size_t>(bytes_of(call.operands.dw_type, call.elements())));
    if (call.before != nullptr && !made.empty()) std::memcpy(made.data(), call.before, made.size());
    std::byte nothing{};
    void* to = made.empty() ? &nothing : made.data();
    if (parsed.plan != nullptr) {
      linear_wgrad_by(under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, to);
    } else if (call.deferred && layer == Layer::fast) {
      DeferredWgrad deferred;
      deferred.store(parsed.config, parsed.shape, call.operands, to);
      deferred.backward_dw();
    } else {
      steps.wgrad(parsed.config, parsed.shape, call.operands, to);
    }
    if (!made.empty()) std::memcpy(dw, made.data(), made.size());
  }
  if (dbias != nullptr) steps.dbias(parsed.config, parsed.shape, call.operands.dy, dbias);
}

void wgrad_visit(const Request& request, const Multiply& see) {
  WgradCall call;
  parse_wgrad(request, call);
  std::vector<std::byte> dw(static_cast<std::size_t>(bytes_of(call.operands.dw_type, call.elements())) + 16);
  if (call.before != nullptr && call.elements() > 0) std::memcpy(dw.data(), call.before, dw.size() - 16);
  linear_wgrad_by(planned(call.parsed, see), call.parsed.config, call.parsed.shape, call.operands, dw.data());
}

Numerics wgrad_numerics(const Request& request) {
  WgradCall call;
  parse_wgrad(request, call);
  return numerics_under(call.parsed, GemmLayout::NT);
}

}  // namespace

const Op kLinearForward{"linear_forward", forward_outputs, forward_answer, true, forward_numerics, "y", bounds<forward_visit>, forward_visit};
const Op kLinearDgrad{"linear_dgrad", dgrad_outputs, dgrad_answer, true, dgrad_numerics, "dx", bounds<dgrad_visit>, dgrad_visit};
const Op kLinearWgrad{"linear_wgrad", wgrad_outputs, wgrad_answer, true, wgrad_numerics, "dw", bounds<wgrad_visit>, wgrad_visit};

}  // namespace assay::conformance
