#pragma once
// Where the rows of the groups of x, dy, C and D lie, where they do not follow one another (spec grouped-gemm-1.4). Only places:
// a product has the bits of the same rows in the plain layout.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

enum class GroupedLayout {
  splits,     // groups follow one another
  m_indices,  // a group for each row, -1: none
  psum,       // ends of the groups, whose starts are aligned
  masked,     // each group has max_m rows, of which the first are its own
};

// Rows [first, first + rows) of the tensor belong to `group`. Their scales, where rows have scales, are rows
// [scale_row, scale_row + rows) of matrix `scale_matrix`.
struct RowRange {
  std::int64_t group = 0;
  std::int64_t first = 0, rows = 0;
  std::int64_t scale_matrix = 0, scale_row = 0;
};

struct GroupRows {
  GroupedLayout layout = GroupedLayout::splits;
  std::vector<RowRange> ranges;          // upward; psum and masked: one for each group, also where it has no rows
  std::vector<std::int64_t> splits;      // rows of each group in all
  std::vector<std::int64_t> scale_rows;  // rows of each matrix of scales
  std::int64_t rows = 0;                 // R
  std::int64_t open_rows = 0;  // those from here on keep in D what they hold; below, rows of no group may hold anything after
};

// Errors of all three: InvalidArgument naming m_indices, psum, splits, alignment, max_m or rows.

// m_indices [R], each -1 or a group below `groups`. Each block of `alignment` rows belongs to one group, whose rows are its first.
GroupRows rows_of_indices(std::span<const std::int32_t> m_indices, std::int64_t groups, std::int64_t alignment);

// psum [G]: group t is [start, psum[t]), where start is psum[t - 1], or 0, rounded up to a multiple of `alignment`.
GroupRows rows_of_psum(std::span<const std::int32_t> psum, std::int64_t alignment, std::int64_t rows);

// Group t is the first splits[t] rows of [t * max_m, (t + 1) * max_m).
GroupRows rows_of_masked(std::span<const std::int64_t> splits, std::int64_t max_m);

}  // namespace assay
