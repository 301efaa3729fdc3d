#include "conformance/judge/compare/touched.h"

#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// "0-3,7,9-12": at most `most` ranges, then how many values are left.
std::string ranges_text(const std::set<std::int64_t>& values, int most = 6) {
  std::string text;
  std::int64_t listed = 0;
  int ranges = 0;
  for (auto at = values.begin(); at != values.end() && ranges < most; ++ranges) {
    const std::int64_t begin = *at;
    std::int64_t end = begin;
    while (at != values.end() && *at <= end + 1) end = *at++, ++listed;
    text += (text.empty() ? "" : ",") + show(begin) + (end > begin ? "-" + show(end) : "");
  }
  const std::int64_t left = static_cast<std::int64_t>(values.size()) - listed;
  return left > 0 ? text + " and " + show(left) + " more" : text;
}

std::string plural_of(const std::string& name) { return name == "index" ? "indices" : name == "k" ? "k" : name + "s"; }

}  // namespace

std::string Touched::text(const OutputMap& map) const {
  std::vector<std::string> parts;
  const auto part = [&](const std::string& name, const std::set<std::int64_t>& values) {
    if (!name.empty() && !values.empty())
      parts.push_back((values.size() > 1 ? plural_of(name) : name) + " " + ranges_text(values));
  };
  if (map.grouped) part("group", groups);
  part(map.row_name, rows);
  part(map.column_name, columns);
  if (has_tiles && !map.is_scale && !map.row_name.empty()) {
    std::string list;
    int listed = 0;
    for (const auto& [i, j] : tiles) {
      if (listed == 8) break;
      list += (listed++ > 0 ? " (" : "(") + show(i) + "," + show(j) + ")";
    }
    if (listed < static_cast<int>(tiles.size()))
      list += " and " + show(tiles.size() - static_cast<std::size_t>(listed)) + " more";
    parts.push_back("tiles 128x128 " + list);
  }
  std::string text;
  for (const std::string& each : parts) text += (text.empty() ? "" : "; ") + each;
  return text;
}

std::string place_text(const OutputMap& map, const Segment& segment, Coordinates at) {
  std::string text;
  const auto part = [&](const std::string& name, std::int64_t value) {
    if (!name.empty()) text += (text.empty() ? "" : ", ") + name + " " + show(value);
  };
  if (map.grouped) part("group", segment.group);
  part(map.row_name, at.row);
  part(map.column_name, at.column);
  if (at.row >= segment.used_rows || at.column >= segment.used_columns) text += " (padding)";
  return text.empty() ? "the only element" : text;
}

}  // namespace assay::conformance
