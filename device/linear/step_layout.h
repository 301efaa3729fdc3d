#pragma once
// A step put together from quantize(), grouped_dbias() and a grouped GEMM: which storage, scaling and accumulation each of them
// uses, and where its parts lie in the workspace. A step is laid out by the same code when its workspace is sized and when it
// runs.

#include <cstdint>
#include <optional>
#include <vector>

#include "device/linear/linear_steps.h"

namespace assay::device {

// The launches of a step: constants, quantizations, sums, product, in this order.
struct StepLayout {
  const LinearCall& call;
  const LinearKernels& kernels;
  std::int64_t* made_splits = nullptr;  // constants that the workspace holds
  float* made_one = nullptr;
  std::vector<QuantizeCall> quantizations;  // in order
  std::optional<DbiasCall> sums;
  std::optional<GroupedGemmCall> product;
  LinearReport report;  // of all but the product
  std::int64_t workspace_bytes = 0;

  StepLayout(const LinearCall& of, const LinearKernels& with) : call(of), kernels(with) {}
};

// `Call`: a call of linear_steps.h, checked (linear_checks.h: its shape alone, if `for_size`) and with something to do. It and
// `kernels` must outlive the returned layout. The size of the call's workspace is not checked.
template <class Call>
StepLayout lay_out(const Call& call, const LinearKernels& kernels, bool for_size);

}  // namespace assay::device
