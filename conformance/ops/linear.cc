// Ops `linear_forward`, `linear_dgrad` and `linear_wgrad` (schema 2).

#include <algorithm>
#include <cstring>

#include "conformance/ops/op.h"
#include "conformance/ops/words.h"
#include "reference/linear/grouped_linear.h"

namespace assay::conformance {
namespace {

struct Parsed {
  std::string architecture;
  std::vector<std::int64_t> splits;
  LinearConfig config;
  LinearShape shape;
  bool bias = false;  // the layer has one: its gradient is asked for in backward
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
  config.force_pow_2_scales = request.flag("pow2");
  config.amax_epsilon = static_cast<float>(request.real_or("eps", 0));
  const std::int64_t mask = request.integer_or("sign_mask", 0);
  require(mask >= 0 && mask <= 0xffff, "attribute sign_mask", mask, "0 to 65535");
  config.hadamard_sign_mask = static_cast<std::uint16_t>(mask);
  const bool sm100 = config.recipe == LinearRecipe::mxfp8 || config.recipe == LinearRecipe::nvfp4;
  parsed.architecture = request.text_or("arch", sm100 ? "sm100" : "sm90");
  config.architecture = parsed.architecture;
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

void answer_dbias(const Request& request, const Parsed& parsed, const void* dy, const Steps& steps) {
  void* dbias = request.output("dbias", parsed.config.type, parsed.groups() * parsed.shape.N);
  if (dbias != nullptr) steps.dbias(parsed.config, parsed.shape, dy, dbias);
}

// With a skip flag the layer has a weight cache: in/w_rowwise_data and in/w_rowwise_scale_inv are what it holds before the
// step, and the outputs of the same names what it holds after it.
struct ForwardCall {
  Parsed parsed;
  LinearForward operands;
  bool cached = false, skipped = false;
  LinearWeightCache before;
};

std::vector<std::byte> bytes_of_input(const Request& request, const char* name) {
  const TensorView& tensor = request.input(name);
  const auto* from = static_cast<const std::byte*>(tensor.data);
  return {from, from + tensor.bytes};
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
    call.cached = true;
    call.skipped = *static_cast<const float*>(noop->data) == 1.0f;
    call.before.rowwise_data = bytes_of_input(request, "w_rowwise_data");
    call.before.rowwise_scale_inv = bytes_of_input(request, "w_rowwise_scale_inv");
    if (parsed.config.recipe == LinearRecipe::nvfp4) {
      const auto* amax = floats(&request.input("w_rowwise_amax", Format::f32, parsed.groups()));
      call.before.amax.assign(amax, amax + parsed.groups());
    }
    call.before.filled = true;
  }
  request.refuse_unknown();
}

std::vector<OutputSpec> forward_outputs(const Request& request) {
  ForwardCall call;
  parse_forward(request, call);
  std::vector<OutputSpec> specs{{"y", call.parsed.config.type, {call.parsed.shape.rows, call.parsed.shape.N}, true}};
  if (call.cached) {
    for (const char* name : {"w_rowwise_data", "w_rowwise_scale_inv"}) {
      const TensorView& tensor = request.input(name);
      specs.push_back({name, tensor.type, tensor.shape});
    }
  }
  return specs;
}

void forward_answer(const Request& request, Layer layer) {
  ForwardCall call;
  parse_forward(request, call);
  const Parsed& parsed = call.parsed;
  const Steps& steps = steps_of(layer);
  LinearWeightCache cache = call.before;
  if (call.cached) {
    // Padding of compact scales stays what it was, as in a cache that is written in place.
    if (!call.skipped) steps.quantize_weights(parsed.config, parsed.shape, call.operands.w, call.operands.w_scale, nullptr, cache);
    call.operands.cache = &cache;
  }
  if (void* y = request.output("y", parsed.config.type, parsed.shape.rows * parsed.shape.N)) {
    steps.forward(parsed.config, parsed.shape, call.operands, y);
  }
  if (!call.cached) return;
  for (const auto& [name, held] : {std::pair("w_rowwise_data", &cache.rowwise_data), std::pair("w_rowwise_scale_inv", &cache.rowwise_scale_inv)}) {
    const TensorView& like = request.input(name);
    void* to = request.output(name, like.type, like.elements());
    if (to != nullptr && !held->empty()) std::memcpy(to, held->data(), std::min<std::size_t>(held->size(), static_cast<std::size_t>(like.bytes)));
  }
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
  if (dx != nullptr) steps.dgrad(parsed.config, parsed.shape, call.operands, dx);
  answer_dbias(request, parsed, call.operands.dy, steps);
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
  if (dw != nullptr) {
    std::vector<std::byte> made(static_cast<std::size_t>(bytes_of(call.operands.dw_type, call.elements())));
    if (call.before != nullptr && !made.empty()) std::memcpy(made.data(), call.before, made.size());
    std::byte nothing{};
    void* to = made.empty() ? &nothing : made.data();
    if (call.deferred && layer == Layer::fast) {
      DeferredWgrad deferred;
      deferred.store(parsed.config, parsed.shape, call.operands, to);
      deferred.backward_dw();
    } else {
      steps.wgrad(parsed.config, parsed.shape, call.operands, to);
    }
    if (!made.empty()) std::memcpy(dw, made.data(), made.size());
  }
  answer_dbias(request, parsed, call.operands.dy, steps);
}

}  // namespace

const Op kLinearForward{"linear_forward", forward_outputs, forward_answer, true};
const Op kLinearDgrad{"linear_dgrad", dgrad_outputs, dgrad_answer, true};
const Op kLinearWgrad{"linear_wgrad", wgrad_outputs, wgrad_answer, true};

}  // namespace assay::conformance
