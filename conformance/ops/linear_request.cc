#include "conformance/ops/linear_request.h"

#include <algorithm>
#include <utility>

#include "conformance/ops/named_plan.h"
#include "conformance/ops/words.h"
#include "reference/types/sizes.h"

namespace assay::conformance {

alignas(16) std::byte linear_nowhere[16];

LinearConfig linear_config_of(const Request& request) {
  LinearConfig config;
  const std::string recipe = request.text("recipe");
  const auto named = linear_recipe_named(recipe);
  if (!named)
    throw InvalidArgument("attribute recipe", "'" + recipe + "'", "none, tensor_current, tensor_delayed, block, mxfp8 or nvfp4");
  config.recipe = *named;
  config.type = request.format_or("itype", Format::bf16);
  const Format code = config.recipe == LinearRecipe::nvfp4 ? Format::e2m1 : Format::e4m3;
  config.forward_code = request.format_or("otype", code);
  config.backward_code = request.format_or("grad_otype", code);
  config.force_pow_2_scales = request.flag("pow2", config.powers_of_two());
  config.amax_epsilon = static_cast<float>(request.real_or("eps", 0));
  config.activation = activation_of(request);
  const std::int64_t mask = request.integer_or("sign_mask", 0);
  require(mask >= 0 && mask <= 0xffff, "attribute sign_mask", mask, "0 to 65535");
  config.hadamard_sign_mask = static_cast<std::uint16_t>(mask);
  return config;
}

std::string linear_architecture_of(const Request& request, LinearRecipe recipe) {
  const bool sm100 = recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4;
  return request.text_or("arch", sm100 ? "sm100" : "sm90");
}

void parse_linear(const Request& request, const char* activation, LinearRequest& parsed) {
  LinearConfig& config = parsed.config;
  config = linear_config_of(request);
  parsed.architecture = linear_architecture_of(request, config.recipe);
  config.architecture = parsed.architecture;
  parsed.plan = named_plan(request);
  parsed.bias = request.flag("bias");
  parsed.splits = request.splits();
  LinearShape& shape = parsed.shape;
  shape.splits = parsed.splits;
  shape.N = request.integer("N");
  shape.K = request.integer("K");
  require(shape.N >= 0, "attribute N", shape.N, "0 or more");
  require(shape.K >= 0, "attribute K", shape.K, "0 or more");
  const TensorView& matrix = request.input(activation, config.type);
  const std::int64_t width = activation[0] == 'x' ? matrices_in_x(config.activation) * shape.K : shape.N;
  if (matrix.shape.size() != 2 || matrix.shape[1] != width) {
    throw InvalidArgument(std::string("in/") + activation, describe(matrix),
                          "a matrix with " + std::to_string(width) + " columns");
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

Multiply multiply_under(const AccumulationPlan& plan, Layer layer) {
  return [&plan, layer](const GroupedGemmProblem& problem, void* d) {
    GroupedGemmProblem planned = problem;
    planned.plan = &plan;
    layer == Layer::fast ? grouped_gemm(planned, d) : scalar::grouped_gemm(planned, d);
  };
}

Multiply with_linear_plan(const LinearRequest& parsed, const Multiply& see) {
  return [&parsed, &see](const GroupedGemmProblem& problem, void* d) {
    GroupedGemmProblem planned = problem;
    if (parsed.plan != nullptr) planned.plan = parsed.plan;
    see(planned, d);
  };
}

Numerics linear_numerics(const LinearRequest& parsed, GemmLayout layout) {
  const AccumulationPlan& plan = linear_plan(parsed.config, parsed.shape, layout, parsed.plan);
  return {std::string(plan.unit), std::string(plan.name)};
}

const float* linear_scales(const Request& request, const LinearRequest& parsed, const char* name) {
  if (parsed.config.recipe != LinearRecipe::tensor_delayed) return nullptr;
  return floats(&request.input(name, Format::f32, parsed.groups()));
}

namespace {

constexpr LinearSteps kFast{linear_forward, linear_dgrad, linear_wgrad, linear_dbias, linear_quantize_weights};
constexpr LinearSteps kScalar{scalar::linear_forward, scalar::linear_dgrad, scalar::linear_wgrad, scalar::linear_dbias,
                              scalar::linear_quantize_weights};

}  // namespace

const LinearSteps& linear_steps(Layer layer) { return layer == Layer::fast ? kFast : kScalar; }

void* linear_dbias_output(const Request& request, const LinearRequest& parsed) {
  return request.output("dbias", parsed.config.type, parsed.groups() * parsed.shape.N);
}

}  // namespace assay::conformance
