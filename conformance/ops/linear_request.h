#pragma once
// What the three ops of a grouped linear layer have in common: their attributes, the plan of their products, their steps.

#include <string>
#include <vector>

#include "conformance/ops/grouped_gemm.h"
#include "conformance/ops/op.h"
#include "reference/linear/grouped_linear.h"
#include "reference/linear/weight_cache.h"

namespace assay::conformance {

struct LinearRequest {
  std::string architecture;
  std::vector<std::int64_t> splits;
  LinearConfig config;
  LinearShape shape;
  bool bias = false;                       // the layer has one: its gradient is requested in backward
  const AccumulationPlan* plan = nullptr;  // in place of the architecture's
  std::int64_t groups() const { return static_cast<std::int64_t>(splits.size()); }
};

// The attributes of a layer, but for its architecture; and that, which is by default the first that has its products. For every
// backend that reads requests. Errors (InvalidArgument): a value that an attribute does not have.
LinearConfig linear_config_of(const Request& request);
std::string linear_architecture_of(const Request& request, LinearRecipe recipe);

// `activation`: the tensor [R, width] that R is taken from. Errors: InvalidArgument for attributes, sizes or a tensor that do not fit;
// NotSupported for a plan that is unknown.
void parse_linear(const Request& request, const char* activation, LinearRequest& parsed);

// grouped_gemm() under another plan than the architecture's.
Multiply multiply_under(const AccumulationPlan& plan, Layer layer);

// `see` in place of the product, with the plan of the request.
Multiply with_linear_plan(const LinearRequest& parsed, const Multiply& see);

extern std::byte linear_nowhere[16];  // stands for an output that is neither read nor written

template <void (*visit)(const Request&, const Multiply&)>
std::vector<CertifiedBound> linear_bounds(const Request& request, const std::string& unit) {
  std::vector<CertifiedBound> made;
  visit(request, [&](const GroupedGemmProblem& problem, void*) { made = bounds_of_product(problem, unit); });
  return made;
}

Numerics linear_numerics(const LinearRequest& parsed, GemmLayout layout);

// The scales of recipe tensor_delayed, one per group; null for the other recipes.
const float* linear_scales(const Request& request, const LinearRequest& parsed, const char* name);

struct LinearSteps {
  decltype(&linear_forward) forward;
  decltype(&linear_dgrad) dgrad;
  decltype(&linear_wgrad) wgrad;
  decltype(&linear_dbias) dbias;
  decltype(&linear_quantize_weights) quantize_weights;
};
const LinearSteps& linear_steps(Layer layer);

// Where the gradient of the bias goes, if it is requested.
void* linear_dbias_output(const Request& request, const LinearRequest& parsed);

}  // namespace assay::conformance
