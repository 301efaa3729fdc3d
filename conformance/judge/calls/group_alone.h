#pragma once
// The same group among other neighbours: batch invariance promises the same bits.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "golden/io/fixture.h"

namespace assay::conformance {

// A product of groups (grouped_gemm or a linear step) with the rows of one group and none of the others.
struct GroupAlone {
  Case problem;
  // Its part of the product's output: first row and rows, there and here.
  std::int64_t first = 0, first_alone = 0, rows = 0;
};

// The largest group alone; nothing where no other group has rows, for another op, or for a
// grouped_layout. Errors: as outputs_of().
std::optional<GroupAlone> largest_group_alone(const Case& problem);

}  // namespace assay::conformance
