#pragma once
// Requests of ops `permute` and `unpermute` (schema 2): types, shapes and attributes. Contents are not read, so that tensors may lie on a
// device.

#include "conformance/ops/request.h"
#include "reference/layout/token_permutation.h"

namespace assay::conformance {

struct PermuteRequest {
  RowMap map;
  const TensorView* x = nullptr;
  const TensorView* scales = nullptr;  // null: none
};

// Errors of both: InvalidArgument.
PermuteRequest permute_request_of(const Request& request);
UnpermuteProblem unpermute_problem_of(const Request& request);

}  // namespace assay::conformance
