#pragma once
// Sums by the second route of the tensor-core units.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/gemm/problem.h"
#include "reference/tests/arithmetic/second_route.h"

namespace assay::conformance {

// A chain of steps over [first, last) of the element (i, j).
inline float chain(const TensorCoreUnit& unit, const GroupView& group, std::int64_t i, std::int64_t j, std::int64_t first,
                   std::int64_t last) {
  std::uint32_t acc = 0;
  for (std::int64_t k = first; k < last; k += unit.products_per_step) {
    second_route::Vector v{group.rows.type, group.columns.type, {}, {}, acc, {}, {}};
    for (std::int64_t at = k; at < std::min<std::int64_t>(k + unit.products_per_step, last); ++at) {
      v.a.push_back(group.rows.element(i, at));
      v.b.push_back(group.columns.element(j, at));
      const bool begins = unit.scaling != StepScaling::none && at % group.rows.scale.k_block == 0;
      if (!begins) continue;
      v.scale_a.push_back(group.rows.scale.code(i, at));
      v.scale_b.push_back(group.columns.scale.code(j, at));
    }
    acc = second_route::step(unit, v);
  }
  if (unit.accumulator != Accumulator::f16_nearest) return std::bit_cast<float>(acc);
  return static_cast<float>(second_route::value_of(Format::f16, acc));
}

}  // namespace assay::conformance
