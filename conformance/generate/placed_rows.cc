#include "conformance/generate/placed_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "conformance/generate/tensors.h"
#include "reference/types/sizes.h"

namespace assay::conformance::inputs {
namespace {

std::int64_t up(std::int64_t value, std::int64_t unit) { return checked_product(ceil_div(value, unit), unit, "alignment", unit); }

}  // namespace

GroupRows place_rows(const CaseLine& line, Case& result) {
  const std::vector<std::int64_t> splits = line.splits();
  const std::string layout = line.text("grouped_layout");
  const std::int64_t extra = line.integer("extra_rows");
  const auto groups = static_cast<std::int64_t>(splits.size());
  if (layout != "splits") result.attributes["grouped_layout"] = layout;
  if (layout == "masked") {
    result.attributes["max_m"] = line.integer("max_m");
    result.in["splits"] = integers_tensor(splits, Format::i32, "splits");
    return rows_of_masked(splits, line.integer("max_m"));
  }
  if (layout == "splits") {
    result.in["splits"] = integers_tensor(splits, Format::i64, "splits");
    GroupRows rows;
    rows.splits = splits;
    rows.open_rows = sum_of(splits);
    rows.rows = checked_sum(rows.open_rows, extra, "extra_rows", extra);
    return rows;
  }
  const std::int64_t alignment = line.integer("alignment");
  result.attributes["alignment"] = alignment;
  std::int64_t aligned = 0;
  std::vector<std::int64_t> ends;
  for (const std::int64_t each : splits) {
    ends.push_back(checked_sum(aligned, each, "alignment", alignment));
    aligned = checked_sum(aligned, up(each, alignment), "alignment", alignment);
  }
  const std::int64_t rows = checked_sum(aligned, extra, "extra_rows", extra);
  if (layout == "psum") {
    const Tensor& psum = result.in["psum"] = integers_tensor(ends, Format::i32, "psum");
    return rows_of_psum({psum.as<std::int32_t>(), ends.size()}, alignment, rows);
  }
  result.attributes["groups"] = groups;
  std::vector<std::int64_t> order(splits.size());
  std::iota(order.begin(), order.end(), 0);
  if (groups > 0) std::rotate(order.begin(), order.begin() + sum_of(splits) % groups, order.end());
  Tensor& indices = result.in["m_indices"] = make(Format::i32, {rows});  // refuses a size that no tensor has
  auto* const of_row = indices.as<std::int32_t>();
  std::fill_n(of_row, rows, -1);
  std::int64_t at = 0;
  for (const std::int64_t group : order) {
    const std::int64_t count = splits[static_cast<std::size_t>(group)];
    std::fill_n(of_row + at, count, static_cast<std::int32_t>(group));
    at += up(count, alignment);
  }
  return rows_of_indices({of_row, static_cast<std::size_t>(rows)}, groups, alignment);
}

void poison_rows_between(const CaseLine& line, const GroupRows& rows, Tensor& matrix) {
  if (rows.layout == GroupedLayout::splits || matrix.shape[0] == 0) return;
  const std::int64_t bytes = static_cast<std::int64_t>(matrix.bytes.size()) / matrix.shape[0];
  const std::int64_t width = matrix.type == Format::e2m1 ? 1 : bits_of(matrix.type) / 8;
  const bool zero = line.text("layout") == "NT", large = line.text("beyond") == "large";
  std::uint32_t code = large ? largest_code(matrix.type) : nan_code(matrix.type);
  if (matrix.type == Format::e2m1) code |= code << 4;
  const auto fill = [&](std::int64_t first, std::int64_t end, std::uint32_t with) {
    for (std::int64_t at = first * bytes; at < end * bytes; at += width)
      std::memcpy(matrix.bytes.data() + at, &with, static_cast<std::size_t>(width));
  };
  std::int64_t end = 0;
  for (const RowRange& range : rows.ranges) {
    fill(end, range.first, zero ? 0 : code);
    end = range.first + range.rows;
  }
  fill(end, rows.open_rows, zero ? 0 : code);
  fill(std::max(end, rows.open_rows), rows.rows, code);
}

}  // namespace assay::conformance::inputs
