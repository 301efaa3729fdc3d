#pragma once
// What blocks find in the table of groups (device/layout/group_table.cuh), asked for by itself: kernels of the rooms look up a part of
// it, or only share work by it.

#include <cstdint>
#include <vector>

#include "device/layout/groups.h"

namespace assay::mutants {

// Whether a block builds the table for valid splits alone, and finds in it the rows of each group, its sums of tiles and of rows in
// fours, and the group of the first and of the last row, tile and row in fours of each. `splits`: those of `rows`, or the one value
// that stands for them where there are none.
bool table_is_right(const device::Rows& rows, const std::vector<std::int64_t>& splits, bool valid);

}  // namespace assay::mutants
