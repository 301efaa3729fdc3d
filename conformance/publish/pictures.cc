#include "conformance/publish/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "conformance/judge/compare/ulp_buckets.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMapSide = 224, kSmallestCell = 6, kLargestCell = 28;
constexpr int kBarHeight = 18, kLabelWidth = 92, kBarWidth = 150, kCountWidth = 70;

struct Bar {
  std::string label;
  std::int64_t count = 0;
};

// "1", "2", "3-4", ..., ">65536".
std::string bucket_label(std::size_t bucket) {
  const std::uint64_t high = std::uint64_t{1} << bucket, low = high / 2 + 1;
  if (bucket == kLastUlpBucket) return fmt::format("> {}", high / 2);
  return bucket == 0 || low == high ? std::to_string(high) : fmt::format("{}-{}", low, high);
}

std::vector<Bar> bars_of(const UlpHistogram& ulp) {
  std::vector<Bar> bars;
  std::size_t first = 0, last = ulp.buckets.size();
  while (first < last && ulp.buckets[first] == 0) ++first;
  while (last > first && ulp.buckets[last - 1] == 0) --last;
  for (std::size_t b = first; b < last; ++b) bars.push_back({bucket_label(b), ulp.buckets[b]});
  if (ulp.zero_sign > 0) bars.push_back({"sign of zero", ulp.zero_sign});
  if (ulp.special > 0) bars.push_back({"NaN, infinity", ulp.special});
  return bars;
}

}  // namespace

std::string wrong_map_figure(const WrongMap& map) {
  if (map.cells.empty() || map.cells.front().empty()) return "";
  const auto down = static_cast<std::int64_t>(map.cells.size()), across = static_cast<std::int64_t>(map.cells.front().size());
  const std::int64_t side = std::clamp(kMapSide / std::max(down, across), kSmallestCell, kLargestCell);
  const std::string group = map.group < 0 ? "output" : fmt::format("group {}", map.group);
  std::string made = fmt::format(
      "<figure class=\"map\"><svg role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">"
      "<title>Wrong elements of {2}, {3} by {4}</title><rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>",
      across * side, down * side, group, map.rows, map.columns);
  for (std::int64_t r = 0; r < down; ++r) {
    const std::string& line = map.cells[static_cast<std::size_t>(r)];
    for (std::size_t c = 0; c < line.size();) {
      std::size_t end = c + 1;
      while (end < line.size() && line[end] == line[c]) ++end;  // equal neighbours are one rectangle
      if (line[c] >= '1' && line[c] <= '9') {
        made += fmt::format("<rect class=\"w{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", line[c],
                            static_cast<std::int64_t>(c) * side, r * side, static_cast<std::int64_t>(end - c) * side, side);
      }
      c = end;
    }
  }
  for (std::int64_t r = 1; r < down; ++r) made += fmt::format("<path class=\"grid\" d=\"M0 {}h{}\"/>", r * side, across * side);
  for (std::int64_t c = 1; c < across; ++c) made += fmt::format("<path class=\"grid\" d=\"M{} 0v{}\"/>", c * side, down * side);
  return made + fmt::format("</svg><figcaption>{}: {} rows, {} columns<br>a cell is {} by {}</figcaption></figure>\n", group,
                            map.rows, map.columns, map.cell_rows, map.cell_columns);
}

std::string ulp_figure(const UlpHistogram& ulp) {
  const std::vector<Bar> bars = bars_of(ulp);
  if (bars.empty()) return "";
  std::int64_t most = 1;
  for (const Bar& each : bars) most = std::max(most, each.count);
  const int width = kLabelWidth + kBarWidth + kCountWidth, height = kBarHeight * static_cast<int>(bars.size());
  std::string made = fmt::format(
      "<figure class=\"ulp\"><svg role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">"
      "<title>Distances of the wrong elements in units in the last place</title>",
      width, height);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const int y = kBarHeight * static_cast<int>(i);
    const auto length = bars[i].count == 0 ? std::int64_t{0} : std::max<std::int64_t>(2, bars[i].count * kBarWidth / most);
    made += fmt::format(
        "<text class=\"label\" x=\"{}\" y=\"{}\">{}</text><rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>",
        kLabelWidth - 8, y + 13, bars[i].label == bucket_label(kLastUlpBucket) ? "&gt; 65536" : bars[i].label, kLabelWidth, y + 3,
        length, kBarHeight - 6, kLabelWidth + length + 5, y + 13, bars[i].count);
  }
  return made + "</svg><figcaption>distance in units in the last place: elements</figcaption></figure>\n";
}

}  // namespace assay::conformance
