#include "conformance/suites/shards.h"

#include <algorithm>
#include <numeric>

#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {

double work_of(const CaseLine& line) {
  // In units of one multiply-add. A call costs about ten thousand elements: generation, two runs, comparison.
  constexpr double kElement = 40, kCall = 400'000;
  const CaseCost cost = cost_of(line);
  return static_cast<double>(cost.macs) + kElement * static_cast<double>(cost.elements) + kCall;
}

std::vector<CaseLine> shard(const std::vector<CaseLine>& cases, std::int64_t index, std::int64_t total) {
  require(total >= 1, "total", total, "at least 1 shard");
  require(index >= 0 && index < total, "index", index, "a shard from 0 to " + show(total - 1));
  std::vector<double> work;
  for (const CaseLine& line : cases) work.push_back(work_of(line));
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  std::vector<double> load(static_cast<std::size_t>(total), 0.0);
  std::vector<bool> mine(cases.size(), false);
  for (const std::size_t each : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += work[each];
    mine[each] = least - load.begin() == index;
  }
  std::vector<CaseLine> chosen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (mine[i]) chosen.push_back(cases[i]);
  }
  return chosen;
}

}  // namespace assay::conformance
