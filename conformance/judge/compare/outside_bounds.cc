#include "conformance/judge/compare/outside_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "conformance/judge/compare/compare.h"
#include "reference/formats/encode.h"

namespace assay::conformance {
namespace {

std::uint64_t bits_at(const Tensor& tensor, std::size_t element, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + element * width, width);
  return bits;
}

}  // namespace

std::string outside_bounds_text(const std::string& output, const Tensor& got, std::span<const std::uint8_t> written,
                                std::uint8_t poison, std::span<const CertifiedBound> bounds, std::vector<Finding>* findings) {
  const auto width = static_cast<std::size_t>(bits_of(got.type) / 8);
  const auto count = static_cast<std::size_t>(got.elements());
  std::vector<float> values(count);
  if (width == 1) {
    decode(got.type, std::span(got.as<std::uint8_t>(), count), values);
  } else {
    widen(got.type, got.bytes.data(), values);
  }
  const std::int64_t columns = got.shape.empty() ? 1 : std::max<std::int64_t>(got.shape.back(), 1);
  const CellGrid grid(static_cast<std::int64_t>(count) / columns, columns);
  std::vector<std::int64_t> cells;
  std::uint64_t digest = 0;
  std::size_t outside = 0, unwritten = 0, touched = 0, first = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* bytes = got.bytes.data() + i * width;
    const bool poisoned =
        std::all_of(bytes, bytes + width, [&](std::byte each) { return each == static_cast<std::byte>(poison); });
    if (written[i * width] == 0) {
      if (poisoned) continue;
      ++touched;
    } else if (!bounds[i].contains(values[i])) {
      ++(poisoned && poison == 0xff ? unwritten : outside);  // other poison bytes may be wrong results
    } else {
      continue;
    }
    if (first == count) first = i;
    const auto element = static_cast<std::int64_t>(i);
    cells.resize(grid.size());
    ++cells[grid.cell(element / columns, element % columns)];
    digest += wrong_element_hash(element, bits_at(got, i, width));
  }
  if (first == count) return "";
  const auto at = static_cast<std::int64_t>(first);
  const std::string shown = show_element(got.type, bits_at(got, first, width));
  const double low = bounds[first].lowest, high = bounds[first].highest;
  if (findings != nullptr) {
    Finding finding;
    finding.kind = "bound";
    finding.output = output;
    finding.compared = static_cast<std::int64_t>(count);
    finding.wrong = static_cast<std::int64_t>(outside + unwritten + touched);
    finding.element = at;
    finding.place = fmt::format("row {}, column {}", at / columns, at % columns);
    set_got(finding, shown);
    finding.want = fmt::format("{} to {}", low, high);
    finding.maps = {wrong_map(-1, grid, cells)};
    finding.digest = fmt::format("{:016x}", digest);
    findings->push_back(std::move(finding));
  }
  return fmt::format(
      "  output  {}: {} outside their bound, {} not written, {} written past the groups, of {}\n"
      "  first   row {}, column {}: got {}, bound {} to {}\n",
      output, outside, unwritten, touched, count, at / columns, at % columns, shown, low, high);
}

}  // namespace assay::conformance
