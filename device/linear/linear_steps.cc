// The steps: a call is checked (linear_checks.h), laid out (step_layout.h), and launched.

#include "device/linear/linear_steps.h"

#include <optional>
#include <type_traits>

#include "device/linear/linear_checks.h"
#include "device/linear/linear_product.h"
#include "device/linear/prepared_step.h"
#include "device/linear/step_layout.h"
#include "device/support/call_checks.h"

namespace assay::device {
namespace {

template <class Call>
bool has_nothing_to_do(const Call& call) {
  return call.rows.groups == 0 || (std::is_same_v<Call, LinearWeightsCall> && !quantizes(call.config));
}

template <class Call>
std::int64_t bytes_of_step(const Call& call, const LinearKernels& kernels) {
  check_shape(call);
  return has_nothing_to_do(call) ? 0 : lay_out(call, kernels, true).workspace_bytes;
}

}  // namespace

struct PreparedStep::Work {
  StepLayout step;
  std::optional<PreparedProduct> product;

  template <class Call>
  Work(const Call& call, const LinearKernels& kernels) : step(lay_out(call, kernels, false)) {
    check_workspace(call.workspace, call.workspace_bytes, step.workspace_bytes);
    if (step.product) product.emplace(call.path, *step.product, kernels);
  }
};

PreparedStep::PreparedStep() = default;
PreparedStep::PreparedStep(PreparedStep&&) noexcept = default;
PreparedStep& PreparedStep::operator=(PreparedStep&&) noexcept = default;
PreparedStep::~PreparedStep() = default;

template <class Call>
PreparedStep::PreparedStep(const Call& call, const LinearKernels& kernels) {
  check_shape(call);
  if (has_nothing_to_do(call)) return;
  check_pointers(call);
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
  StepLayout& step = work_->step;
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
    case LinearRecipe::block: return rowwise;
    case LinearRecipe::tensor_current:
    case LinearRecipe::tensor_delayed:
    case LinearRecipe::mxfp8: return rowwise || columnwise;
    case LinearRecipe::nvfp4:
    case LinearRecipe::none: break;
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
