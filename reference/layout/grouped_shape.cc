#include "reference/layout/grouped_shape.h"

#include <algorithm>
#include <string>

#include "reference/layout/offsets.h"
#include "reference/layout/sizes.h"
#include "reference/support/error.h"

namespace assay {
namespace {

std::string element(std::string_view array, std::size_t index) {
  return std::string(array) + "[" + show(index) + "]";
}

std::int64_t sum_of(std::span<const std::int64_t> extents, std::string_view name) {
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < extents.size(); ++t) sum = checked_sum(sum, extents[t], element(name, t), extents[t]);
  return sum;
}

void require_extents(std::span<const std::int64_t> extents, std::string_view name) {
  for (std::size_t t = 0; t < extents.size(); ++t) {
    require(extents[t] >= 0, element(name, t), extents[t], "a value of at least 0");
  }
}

// Every total that a caller may ask for later fits int64.
GroupedShape checked(GroupedShape shape) {
  logical_shape(shape);
  element_offsets(shape);
  return shape;
}

}  // namespace

std::string_view name_of(GroupedForm form) {
  switch (form) {
    case GroupedForm::uniform:
      return "uniform";
    case GroupedForm::varying_first:
      return "varying_first";
    case GroupedForm::varying_last:
      return "varying_last";
    case GroupedForm::varying_both:
      return "varying_both";
  }
  throw InvalidArgument("form", show(static_cast<std::uint32_t>(form)), "a form of grouped tensor (0 to 3)");
}

GroupedShape uniform_groups(std::int64_t groups, std::int64_t first, std::int64_t last) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  require(first >= 0, "first", first, "a value of at least 0");
  require(last >= 0, "last", last, "a value of at least 0");
  checked_product(checked_product(groups, first, "first", first), last, "last", last);
  checked_product(first, last, "last", last);
  const auto count = static_cast<std::size_t>(groups);
  return {GroupedForm::uniform, std::vector(count, first), std::vector(count, last), first, last};
}

GroupedShape varying_first_groups(std::span<const std::int64_t> first, std::int64_t last) {
  require_extents(first, "first");
  require(last >= 0, "last", last, "a value of at least 0");
  return checked({GroupedForm::varying_first, {first.begin(), first.end()}, std::vector(first.size(), last), 0, last});
}

GroupedShape varying_last_groups(std::int64_t first, std::span<const std::int64_t> last) {
  require(first >= 0, "first", first, "a value of at least 0");
  require_extents(last, "last");
  return checked({GroupedForm::varying_last, std::vector(last.size(), first), {last.begin(), last.end()}, first, 0});
}

GroupedShape varying_both_groups(std::span<const std::int64_t> first, std::span<const std::int64_t> last) {
  return checked({GroupedForm::varying_both, {first.begin(), first.end()}, {last.begin(), last.end()}, 0, 0});
}

LogicalShape logical_shape(const GroupedShape& shape) {
  switch (shape.form) {
    case GroupedForm::uniform:
      return {shape.groups() * shape.common_first, shape.common_last};
    case GroupedForm::varying_first:
      return {sum_of(shape.first, "first"), shape.common_last};
    case GroupedForm::varying_last:
      return {shape.common_first, sum_of(shape.last, "last")};
    case GroupedForm::varying_both:
      return {1, element_offsets(shape).back()};
  }
  throw InvalidArgument("shape.form", show(static_cast<std::uint32_t>(shape.form)), "a form of grouped tensor (0 to 3)");
}

void check_capacity(const GroupedShape& shape, const LogicalShape& capacity) {
  const LogicalShape least = logical_shape(shape);
  const bool more_rows = shape.form == GroupedForm::varying_first;
  const bool more_columns = shape.form == GroupedForm::varying_last || shape.form == GroupedForm::varying_both;
  require(more_rows ? capacity.rows >= least.rows : capacity.rows == least.rows, "capacity.rows", capacity.rows,
          show(least.rows) + (more_rows ? " or more" : ""));
  require(more_columns ? capacity.columns >= least.columns : capacity.columns == least.columns, "capacity.columns",
          capacity.columns, show(least.columns) + (more_columns ? " or more" : ""));
  checked_product(capacity.rows, capacity.columns, "capacity.rows", capacity.rows);
}

std::vector<std::int64_t> element_offsets(const GroupedShape& shape) { return splits_to_offsets_2d(shape.first, shape.last); }

void check_offsets(const GroupedShape& shape, std::span<const std::int64_t> offsets, std::int64_t buffer_elements) {
  const auto groups = static_cast<std::size_t>(shape.groups());
  require(offsets.size() == groups + 1, "offsets.size()", offsets.size(), show(groups + 1) + ", one more than groups");
  require(offsets[0] >= 0, "offsets[0]", offsets[0], "a value of at least 0");
  for (std::size_t t = 0; t < groups; ++t) {
    std::int64_t end = 0;
    const bool overflow = __builtin_add_overflow(offsets[t], shape.first[t] * shape.last[t], &end);
    require(!overflow && offsets[t + 1] >= end, element("offsets", t + 1), offsets[t + 1],
            "the end of group " + show(t) + " or more: " + show(offsets[t]) + " + " + show(shape.first[t] * shape.last[t]));
  }
  require(offsets[groups] <= buffer_elements, element("offsets", groups), offsets[groups],
          "at most the elements of the buffer: " + show(buffer_elements));
}

void check_dense_offsets(const GroupedShape& shape, std::span<const std::int64_t> offsets, std::int64_t buffer_elements) {
  check_offsets(shape, offsets, buffer_elements);
  const std::vector<std::int64_t> dense = element_offsets(shape);
  for (std::size_t t = 0; t < dense.size(); ++t) {
    require(offsets[t] == dense[t], element("offsets", t), offsets[t], show(dense[t]) + ", without a gap");
  }
}

std::int64_t group_of(std::span<const std::int64_t> offsets, std::int64_t x) {
  require(offsets.size() >= 2, "offsets.size()", offsets.size(), "2 or more: one group has two offsets");
  require(x >= 0, "x", x, "a value of at least 0");
  const auto second = offsets.begin() + 1, last = offsets.end() - 1;  // where the groups after the first begin
  return std::upper_bound(second, last, x) - second;
}

std::vector<std::int64_t> scale_offsets(Recipe recipe, Direction direction, const GroupedShape& shape) {
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t t = 0; t < shape.first.size(); ++t) {
    const std::int64_t elements = scale_shape(recipe, direction, shape.first[t], shape.last[t]).elements();
    offsets.push_back(checked_sum(offsets.back(), elements, "shape.first[" + show(t) + "]", shape.first[t]));
  }
  return offsets;
}

}  // namespace assay
