#include "conformance/suites/shards.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {

double work_of(const CaseLine& line) {
  // In units of one multiply-add. A call costs about ten thousand elements: generation, two runs, comparison.
  constexpr double kElement = 40, kCall = 400'000;
  const CaseCost cost = cost_of(line);
  return static_cast<double>(cost.macs) + kElement * static_cast<double>(cost.elements) + kCall;
}

std::vector<std::vector<std::size_t>> shards_of(const std::vector<CaseLine>& cases, std::int64_t total) {
  require(total >= 1, "total", total, "at least 1 shard");
  std::vector<double> work;
  work.reserve(cases.size());
  for (const CaseLine& line : cases) work.push_back(work_of(line));
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  using Load = std::pair<double, std::size_t>;  // of equal loads the first shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  std::vector<std::vector<std::size_t>> shards(static_cast<std::size_t>(total));
  for (std::size_t i = 0; i < shards.size(); ++i) least.emplace(0.0, i);
  for (const std::size_t each : order) {
    const auto [load, index] = least.top();
    least.pop();
    least.emplace(load + work[each], index);
    shards[index].push_back(each);
  }
  for (std::vector<std::size_t>& each : shards) std::sort(each.begin(), each.end());
  return shards;
}

std::vector<CaseLine> shard(const std::vector<CaseLine>& cases, std::int64_t index, std::int64_t total) {
  require(total >= 1, "total", total, "at least 1 shard");
  require(index >= 0 && index < total, "index", index, "a shard from 0 to " + show(total - 1));
  const std::vector<std::vector<std::size_t>> shards = shards_of(cases, total);
  std::vector<CaseLine> chosen;
  for (const std::size_t each : shards[static_cast<std::size_t>(index)]) chosen.push_back(cases[each]);
  return chosen;
}

}  // namespace assay::conformance
