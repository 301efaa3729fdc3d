#include "conformance/selftest/hunt/cover.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "conformance/judge/call_runner.h"

namespace assay::conformance {
namespace {

class Covering {
 public:
  Covering(const KillMatrix& matrix, const CoverDemand& demand) : matrix_(matrix) {
    kills_.resize(matrix.cases.size());
    needed_.resize(matrix.rows.size());
    for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
      if (!demand.counts.empty() && !demand.counts[row]) continue;
      int possible = 0, there = 0;
      for (const std::int32_t killer : matrix.rows[row].killers) {
        const bool is_given = !demand.given.empty() && demand.given[at(killer)];
        if (!is_given && !demand.offered.empty() && !demand.offered[at(killer)]) continue;
        ++possible;
        there += is_given;
        if (!is_given) kills_[at(killer)].push_back(row);
      }
      needed_[row] = std::max(0, std::min(demand.times, possible) - there);
    }
    const std::string salt = std::to_string(demand.seed);
    for (const KillingCase& each : matrix.cases) ties_.push_back(variety_of(salt, each.line));
  }

  // Greedy: the case that covers most for its cost, again and again.
  std::vector<std::int32_t> chosen() {
    std::vector<int> open = needed_;
    const auto gain = [&](std::int32_t of) {
      return std::count_if(kills_[at(of)].begin(), kills_[at(of)].end(), [&](std::size_t row) { return open[row] > 0; });
    };
    // A gain only shrinks, so that one that is still at the top after it was computed again is the largest.
    using Entry = std::tuple<double, std::uint64_t, std::int32_t>;
    std::priority_queue<Entry> queue;
    const auto entry = [&](std::int32_t of) {
      return Entry(static_cast<double>(gain(of)) / std::max(matrix_.cases[at(of)].work, 1.0), ties_[at(of)], of);
    };
    for (std::size_t i = 0; i < kills_.size(); ++i) queue.push(entry(static_cast<std::int32_t>(i)));
    std::vector<std::int32_t> taken;
    while (!queue.empty()) {
      const Entry top = queue.top();
      queue.pop();
      const Entry now = entry(std::get<2>(top));
      if (std::get<0>(now) == 0) continue;
      if (std::get<0>(now) < std::get<0>(top)) {
        queue.push(now);
        continue;
      }
      taken.push_back(std::get<2>(now));
      for (const std::size_t row : kills_[at(taken.back())]) --open[row];
    }
    return taken;
  }

  // Without those that the others make superfluous, the costliest first.
  std::vector<std::int32_t> irreducible(std::vector<std::int32_t> taken) {
    std::vector<int> covered(needed_.size());
    for (const std::int32_t each : taken) {
      for (const std::size_t row : kills_[at(each)]) ++covered[row];
    }
    std::sort(taken.begin(), taken.end(), [&](std::int32_t a, std::int32_t b) {
      return std::tuple(-matrix_.cases[at(a)].work, ties_[at(a)], a) < std::tuple(-matrix_.cases[at(b)].work, ties_[at(b)], b);
    });
    std::vector<std::int32_t> kept;
    for (const std::int32_t each : taken) {
      const std::vector<std::size_t>& rows = kills_[at(each)];
      if (std::all_of(rows.begin(), rows.end(), [&](std::size_t row) { return covered[row] > needed_[row]; })) {
        for (const std::size_t row : rows) --covered[row];
      } else {
        kept.push_back(each);
      }
    }
    std::sort(kept.begin(), kept.end());
    return kept;
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  const KillMatrix& matrix_;
  std::vector<std::vector<std::size_t>> kills_;  // rows, by case
  std::vector<int> needed_;                      // cases, by row
  std::vector<std::uint64_t> ties_;
};

}  // namespace

std::vector<std::int32_t> cover_of(const KillMatrix& matrix, const CoverDemand& demand) {
  Covering covering(matrix, demand);
  return covering.irreducible(covering.chosen());
}

KillMatrix with_one_killer(const KillMatrix& matrix, const std::vector<std::int32_t>& cases) {
  KillMatrix made = matrix;
  made.kills = 1;
  made.cases.clear();
  std::vector<std::int32_t> numbers(matrix.cases.size(), -1);
  for (const std::int32_t each : cases) numbers[static_cast<std::size_t>(each)] = 0;
  std::vector<bool> used(matrix.cases.size());
  for (KillRow& row : made.rows) {
    const auto first = std::find_if(row.killers.begin(), row.killers.end(),
                                    [&](std::int32_t killer) { return numbers[static_cast<std::size_t>(killer)] >= 0; });
    row.killers = first == row.killers.end() ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{*first};
    if (!row.killers.empty()) used[static_cast<std::size_t>(row.killers[0])] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    numbers[i] = static_cast<std::int32_t>(made.cases.size());
    made.cases.push_back(matrix.cases[i]);
  }
  for (KillRow& row : made.rows) {
    for (std::int32_t& killer : row.killers) killer = numbers[static_cast<std::size_t>(killer)];
  }
  return made;
}

}  // namespace assay::conformance
