// Classes of shapes, for the matrix of a report.

#include <algorithm>
#include <numeric>

#include "conformance/cases/case_line.h"
#include "conformance/publish/collected.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kTile = 128;
constexpr std::size_t kManyGroups = 64;

std::string class_of(const std::vector<std::int64_t>& groups) {
  const auto any = [&](auto test) { return std::any_of(groups.begin(), groups.end(), test); };
  if (std::accumulate(groups.begin(), groups.end(), std::int64_t{0}) == 0) return "no rows";
  if (groups.size() > kManyGroups) return "over 64 groups";
  if (any([](std::int64_t rows) { return rows == 0; })) return "empty groups";
  if (groups.size() == 1) return "one group";
  if (any([](std::int64_t rows) { return rows % kTile != 0; })) return "groups with tails";
  return any([&](std::int64_t rows) { return rows != groups.front(); }) ? "unequal groups" : "equal groups";
}

}  // namespace

std::vector<std::string> shape_classes() {
  return {"one matrix",   "one group",      "equal groups", "unequal groups", "groups with tails",
          "empty groups", "over 64 groups", "no rows",      "other",          "recorded"};
}

std::string shape_class(const CaseReport& report) {
  if (report.line.empty()) return report.suite == "backend" ? "other" : "recorded";
  try {
    const CaseLine line = parse_case_line(report.line);
    const auto has = [&](const char* key) {
      return std::any_of(line.parameters.begin(), line.parameters.end(), [&](const Parameter& each) { return each.key == key; });
    };
    if (has("splits")) return class_of(line.splits());
    return has("R") ? "one matrix" : "other";
  } catch (const std::exception&) {  // a line of a version with other keys
    return "other";
  }
}

}  // namespace assay::conformance
