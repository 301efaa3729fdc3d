#pragma once
// The rows of each group where groups do not follow one another (spec grouped-gemm-1.4), as the set-up kernel reads them. The host
// compiles it too, for tests. Internal to this folder.
//
// A span is a run of rows of one group: all rows of group t, or with m_indices those of one block of `alignment` rows. Each is
// multiplied by itself; spans of one group share its weight, its scales of the whole operand, and its alpha.

#include <cstdint>

#include "device/gemm/grouped_gemm.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device::emulated {

// Rows [first, first + rows) of the matrix.
struct GroupSpan {
  std::int32_t group;
  std::int64_t first, rows;
};

// Spans of a call.
ASSAY_HD constexpr std::int64_t span_count(const GroupPlaces& places, const Rows& rows) {
  return places.layout == GroupedLayout::m_indices ? ceil_div(rows.capacity, places.alignment) : rows.groups;
}

// A function for each layout. Contents that are none set bits of `faults` (Status) and give no rows.

// The rows of block `block`: its first ones, all of one group, and -1 after them.
ASSAY_HD inline GroupSpan span_of_indices(const std::int32_t* indices, const Rows& rows, std::int64_t alignment,
                                          std::int64_t block, unsigned& faults) {
  const std::int64_t first = block * alignment, end = first + alignment < rows.capacity ? first + alignment : rows.capacity;
  const std::int32_t group = indices[first];
  GroupSpan span{group, first, 0};
  bool good = true;
  for (std::int64_t row = first; row < end; ++row) {
    const std::int32_t entry = indices[row];
    const bool follows = entry == group && span.rows == row - first;
    good = good && entry >= -1 && entry < rows.groups && (entry == -1 || follows);
    if (entry != -1 && follows) ++span.rows;
  }
  if (good) return span;
  faults |= kStatusInvalidIndex;
  return {0, 0, 0};
}

// From the end of group t - 1, rounded up to the alignment, to psum[t].
ASSAY_HD inline GroupSpan span_of_psum(const std::int32_t* psum, const Rows& rows, std::int64_t alignment, int t,
                                       unsigned& faults) {
  const std::int64_t before = t == 0 ? 0 : psum[t - 1], end = psum[t];
  const std::int64_t first = before < 0 ? 0 : round_up(before, alignment);  // a negative one is a fault of group t - 1
  if (end < first) faults |= kStatusNegativeSplit;
  if (end > rows.capacity) faults |= kStatusSplitsExceedRows;
  return end < first || end > rows.capacity ? GroupSpan{0, 0, 0} : GroupSpan{t, first, end - first};
}

// The first `count` of the max_m rows of group t.
ASSAY_HD inline GroupSpan span_of_masked(std::int64_t count, std::int64_t max_m, int t, unsigned& faults) {
  if (count < 0) faults |= kStatusNegativeSplit;
  if (count > max_m) faults |= kStatusSplitsExceedRows;
  return count < 0 || count > max_m ? GroupSpan{0, 0, 0} : GroupSpan{t, t * max_m, count};
}

}  // namespace assay::device::emulated
