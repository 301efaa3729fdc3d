// Op `linear_forward` (schema 2).

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "conformance/ops/linear_request.h"
#include "conformance/ops/words.h"

namespace assay::conformance {
namespace {

const void* data(const TensorView* tensor) { return tensor == nullptr ? nullptr : tensor->data; }

// With a skip flag the layer has a weight cache: in/w_rowwise_data, in/w_rowwise_scale_inv and, for nvfp4, in/w_rowwise_amax
// are what it holds before the step, and the outputs of the same names what it holds after it.
struct ForwardCall {
  LinearRequest parsed;
  LinearForward operands;
  const float* noop = nullptr;
  LinearWeightCache before;
  bool cached() const { return noop != nullptr; }
};

// What a cache of this layer holds, by the name of its tensor.
struct CacheMember {
  const char* name;
  std::vector<std::byte> QuantizedTensor::*bytes;
};
constexpr std::array<CacheMember, 2> kCacheMembers = {
    {{"w_rowwise_data", &QuantizedTensor::rowwise_data}, {"w_rowwise_scale_inv", &QuantizedTensor::rowwise_scale_inv}}};
constexpr const char* kCacheAmax = "w_rowwise_amax";

void parse_cache(const Request& request, ForwardCall& call) {
  const LinearRequest& parsed = call.parsed;
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
  parse_linear(request, "x", call.parsed);
  const LinearRequest& parsed = call.parsed;
  const std::int64_t weights = parsed.groups() * parsed.shape.N * parsed.shape.K;
  call.operands.x = request.input("x").data;
  call.operands.w = request.input("w", parsed.config.type, weights).data;
  call.operands.bias = data(request.find_input("bias", parsed.config.type, parsed.groups() * parsed.shape.N));
  call.operands.x_scale = linear_scales(request, parsed, "x_scale");
  call.operands.w_scale = linear_scales(request, parsed, "w_scale");
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
void store_scales(const LinearRequest& parsed, std::span<const std::byte> from, std::byte* to) {
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
  const LinearRequest& parsed = call.parsed;
  const LinearSteps& steps = linear_steps(layer);
  // Every output is checked before the first is written.
  void* y = request.output("y", parsed.config.type, parsed.shape.rows * parsed.shape.N);
  LinearWeightCache& cache = call.before;
  std::vector<std::pair<void*, std::span<const std::byte>>> kept;
  if (call.cached()) {
    // Padding of compact scales is left unchanged, as in a cache that is written in place.
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
    linear_forward_by(multiply_under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, y);
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
  const LinearRequest& parsed = call.parsed;
  if (call.cached()) {
    linear_quantize_weights(parsed.config, parsed.shape, call.operands.w, call.operands.w_scale, call.noop, call.before);
    call.operands.cache = &call.before;
  }
  linear_forward_by(with_linear_plan(parsed, see), parsed.config, parsed.shape, call.operands, linear_nowhere);
}

Numerics forward_numerics(const Request& request) {
  ForwardCall call;
  parse_forward(request, call);
  return linear_numerics(call.parsed, GemmLayout::TN);
}

}  // namespace

const Op kLinearForward{
    "linear_forward", forward_outputs, forward_answer, true, forward_numerics, "y", linear_bounds<forward_visit>, forward_visit};

}  // namespace assay::conformance
