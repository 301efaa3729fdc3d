#pragma once
// The shape of a grouped tensor: G matrices of first[t] x last[t] elements in one flat buffer, each row-major and one
// after another (recipes.md 7.3 and 7.4). All may have one shape, or the first, the last or both extents may vary.
//
//   form          logical shape                              the capacity may be larger in
//   uniform       [G * first, last]                          nothing
//   varying first [first[0] + ... + first[G-1], last]        its rows
//   varying last  [first, last[0] + ... + last[G-1]]         its columns
//   varying both  [1, all elements]                          its columns
//
// In every form group t is a contiguous matrix of its own: with a varying last extent it is no column slice.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reference/layout/scale_shape.h"

namespace assay {

enum class GroupedForm : std::uint32_t { uniform = 0, varying_first = 1, varying_last = 2, varying_both = 3 };

// "uniform", "varying_first", "varying_last", "varying_both".
std::string_view name_of(GroupedForm form);

// Rows and columns of the whole, and what a buffer for it holds.
struct LogicalShape {
  std::int64_t rows = 0, columns = 0;
  std::int64_t elements() const { return rows * columns; }
};

// Made by the four calls below, which check it; the vectors hold G values each.
struct GroupedShape {
  GroupedForm form = GroupedForm::uniform;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> last;
  std::int64_t common_first = 0;  // of uniform and varying_last, also when there is no group
  std::int64_t common_last = 0;   // of uniform and varying_first

  std::int64_t groups() const { return static_cast<std::int64_t>(first.size()); }
};

// No group at all and groups without elements are fine. Errors: a negative count or extent, extents of different number,
// a total of rows, columns or elements past int64.
GroupedShape uniform_groups(std::int64_t groups, std::int64_t first, std::int64_t last);
GroupedShape varying_first_groups(std::span<const std::int64_t> first, std::int64_t last);
GroupedShape varying_last_groups(std::int64_t first, std::span<const std::int64_t> last);
GroupedShape varying_both_groups(std::span<const std::int64_t> first, std::span<const std::int64_t> last);

// The smallest logical shape of the groups, as the table above has it.
LogicalShape logical_shape(const GroupedShape& shape);

// Whether `capacity` is a logical shape that can hold the groups; larger is fine only where the table above allows it.
// Errors: any other extent, or elements past int64.
void check_capacity(const GroupedShape& shape, const LogicalShape& capacity);

// Dense offsets in elements, G+1 values from 0: where each group begins and the last one ends.
std::vector<std::int64_t> element_offsets(const GroupedShape& shape);

// Offsets that a caller brings, which may leave gaps between groups and after the last. Errors: not G+1 values, an
// offset below 0, a group that reaches past the next offset, a last offset past `buffer_elements`.
void check_offsets(const GroupedShape& shape, std::span<const std::int64_t> offsets, std::int64_t buffer_elements);

// The same without gaps, as quantization wants them: equal to element_offsets(). The buffer may be larger.
void check_dense_offsets(const GroupedShape& shape, std::span<const std::int64_t> offsets, std::int64_t buffer_elements);

// The group that element `x` belongs to: the largest t with offsets[t] <= x. `offsets` are the G+1 values above, never
// falling. A group without elements is found only if x is at or past its end and no group after it has any; x at or past
// the last offset gives the last group, and x before the first offset gives group 0. Errors: fewer than 2 offsets, x
// below 0.
std::int64_t group_of(std::span<const std::int64_t> offsets, std::int64_t x);

// First element of each group's scales and the total, G+1 values: sums of scale_shape() over groups, whatever the form.
std::vector<std::int64_t> scale_offsets(Recipe recipe, Direction direction, const GroupedShape& shape);

}  // namespace assay
