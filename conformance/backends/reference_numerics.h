#pragma once
// What a backend states that computes as the reference does.

#include <cstdio>

#include "conformance/backends/stated_plan.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/request.h"

namespace assay::conformance {

inline void put_reference_numerics(const Request& request, assay_numerics& numerics) {
  const Numerics stated = numerics_of(request);
  std::snprintf(numerics.unit, sizeof numerics.unit, "%s", stated.unit.c_str());
  put_plan(numerics, stated.plan);
  numerics.keeps_zero_sign = request.text_or("zero_sign", "kept") == "positive" ? 0 : 1;
  numerics.deterministic = 1;
  numerics.batch_invariant = 1;
}

}  // namespace assay::conformance
