#include "reference/gemm/group_rows.h"

#include <algorithm>
#include <string>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

std::string at(const char* name, std::size_t index) {
  std::string text = name;
  return text.append("[").append(show(index)).append("]");
}

}  // namespace

GroupRows rows_of_indices(std::span<const std::int32_t> m_indices, std::int64_t groups, std::int64_t alignment) {
  require(alignment >= 1, "alignment", alignment, "1 or more");
  GroupRows made;
  made.layout = GroupedLayout::m_indices;
  made.rows = made.open_rows = static_cast<std::int64_t>(m_indices.size());
  made.splits.assign(static_cast<std::size_t>(groups), 0);
  made.scale_rows = {made.rows};
  std::int64_t before = -1;  // the group of the row before
  for (std::size_t row = 0; row < m_indices.size(); ++row) {
    const std::int64_t group = m_indices[row];
    require(group >= -1 && group < groups, at("m_indices", row), group, "-1, or a group below " + show(groups));
    const bool goes_on = group == before;
    before = group;
    if (group < 0) continue;
    const auto place = static_cast<std::int64_t>(row);
    require(goes_on || place % alignment == 0, at("m_indices", row), group,
            "the group of the row before: rows of one group are the first of a block of " + show(alignment));
    ++made.splits[static_cast<std::size_t>(group)];
    if (goes_on) {
      ++made.ranges.back().rows;
    } else {
      made.ranges.push_back({group, place, 1, 0, place});
    }
  }
  return made;
}

GroupRows rows_of_psum(std::span<const std::int32_t> psum, std::int64_t alignment, std::int64_t rows) {
  require(alignment >= 1, "alignment", alignment, "1 or more");
  GroupRows made;
  made.layout = GroupedLayout::psum;
  made.rows = rows;
  made.scale_rows = {rows};
  std::int64_t start = 0;
  for (std::size_t t = 0; t < psum.size(); ++t) {
    const std::int64_t end = psum[t];
    require(end >= start && end <= rows, at("psum", t), end, "from " + show(start) + " to the number of rows, " + show(rows));
    made.ranges.push_back({static_cast<std::int64_t>(t), start, end - start, 0, start});
    made.splits.push_back(end - start);
    start = checked_product(ceil_div(end, alignment), alignment, "alignment", alignment);
  }
  made.open_rows = std::min(start, rows);
  return made;
}

GroupRows rows_of_masked(std::span<const std::int64_t> splits, std::int64_t max_m) {
  require(max_m >= 0, "max_m", max_m, "0 or more");
  GroupRows made;
  made.layout = GroupedLayout::masked;
  const auto groups = static_cast<std::int64_t>(splits.size());
  made.rows = made.open_rows = checked_product(groups, max_m, "max_m", max_m);
  made.splits.assign(splits.begin(), splits.end());
  made.scale_rows.assign(splits.size(), max_m);
  for (std::size_t t = 0; t < splits.size(); ++t) {
    require(splits[t] >= 0 && splits[t] <= max_m, at("splits", t), splits[t], "from 0 to max_m, " + show(max_m));
    const auto group = static_cast<std::int64_t>(t);
    made.ranges.push_back({group, group * max_m, splits[t], group, 0});
  }
  return made;
}

}  // namespace assay
