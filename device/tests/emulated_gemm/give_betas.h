#pragma once
// A grouped product whose beta is an input, one for each group.

#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/ops/answer.h"
#include "golden/io/fixture.h"
#include "reference/types/tensor.h"

namespace assay::conformance {

// C is there too, of zeros where the problem has none.
inline void give_betas(Case& problem, const std::vector<float>& values) {
  const OutputSpec d = outputs_of(Request::of(problem)).at(0);
  if (!problem.in.contains("c")) problem.in["c"] = make_tensor(d.type, d.shape);
  problem.attributes.erase("beta");
  Tensor& beta = problem.in["beta"] = make_tensor(Format::f32, {static_cast<std::int64_t>(values.size())});
  std::memcpy(beta.bytes.data(), values.data(), beta.bytes.size());
}

}  // namespace assay::conformance
