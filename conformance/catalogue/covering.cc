#include "conformance/catalogue/covering.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "conformance/generate/generator.h"
#include "conformance/support/counter_random.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// A value of one axis and a value of a later one.
struct Pair {
  std::size_t axis, value, other_axis, other_value;
  auto operator<=>(const Pair&) const = default;
};

using Row = std::vector<std::size_t>;  // which value of each axis

std::optional<CaseLine> line_of(const std::string& prefix, const std::vector<Axis>& axes, const Row& row, int seed,
                                const CoveringLimits& limits) {
  std::string text = prefix;
  for (std::size_t a = 0; a < axes.size(); ++a) text += " " + axes[a][row[a]];
  try {
    const CaseLine line = parse_case_line(text + " seed=" + show(seed));
    const CaseCost cost = cost_of(line);
    if (cost.macs > limits.most_macs || cost.elements > limits.most_elements) return std::nullopt;
    return line;
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace

// Greedy: each line starts from a pair that is not covered yet; the other axes take, out of a few random rows, the one that covers most.
// Options exclude one another, so a refused row is drawn again with more and more of the first values, which
// stand for none.
std::vector<CaseLine> covering_lines(const std::string& prefix, const std::vector<Axis>& axes, int first_seed,
                                     const CoveringLimits& limits) {
  std::set<Pair> open;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (std::size_t b = a + 1; b < axes.size(); ++b) {
      for (std::size_t i = 0; i < axes[a].size(); ++i) {
        for (std::size_t j = 0; j < axes[b].size(); ++j) open.insert({a, i, b, j});
      }
    }
  }
  const CounterRandom random(static_cast<std::uint64_t>(first_seed), "covering");
  std::uint64_t draw = 0;
  std::vector<CaseLine> lines;
  while (!open.empty()) {
    const Pair start = *open.begin();
    std::optional<CaseLine> best;
    Row best_row;
    int best_gain = -1;
    for (int attempt = 0, valid = 0; attempt < 48 && valid < 4; ++attempt) {
      Row row;
      for (const Axis& axis : axes) {
        const std::size_t drawn = random.below(draw++, static_cast<std::uint32_t>(axis.size()));
        const bool first = attempt >= 12 && random.below(draw++, attempt < 24 ? 2 : 8) != 0;
        row.push_back(first ? 0 : drawn);
      }
      row[start.axis] = start.value;
      row[start.other_axis] = start.other_value;
      int gain = 0;
      for (std::size_t a = 0; a < axes.size(); ++a) {
        for (std::size_t b = a + 1; b < axes.size(); ++b) gain += static_cast<int>(open.count({a, row[a], b, row[b]}));
      }
      if (gain <= best_gain) continue;
      std::optional<CaseLine> line = line_of(prefix, axes, row, first_seed + static_cast<int>(lines.size()), limits);
      if (!line) continue;
      ++valid;
      best = std::move(line);
      best_row = std::move(row);
      best_gain = gain;
    }
    if (!best) {  // the two exclude one another
      open.erase(start);
      continue;
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      for (std::size_t b = a + 1; b < axes.size(); ++b) open.erase({a, best_row[a], b, best_row[b]});
    }
    lines.push_back(std::move(*best));
  }
  return lines;
}

bool is_case_line(const std::string& text) {
  try {
    parse_case_line(text);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

void SeededLines::add(const std::string& text) { made_.push_back(parse_case_line(text + " seed=" + show(seed_++))); }

void SeededLines::add_each(const std::string& prefix, const std::vector<Axis>& axes) {
  constexpr std::size_t kMax = 64;  // more than any axis has words
  std::set<std::pair<std::size_t, std::string>> met;
  for (std::size_t turn = 0; turn < kMax; ++turn) {
    std::string text = prefix;
    bool is_new = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Axis fits;
      for (const std::string& word : axes[i]) {
        if (is_case_line(text + " " + word)) fits.push_back(word);
      }
      if (fits.empty()) continue;
      auto word = std::find_if(fits.begin(), fits.end(), [&](const std::string& each) { return met.count({i, each}) == 0; });
      is_new |= word != fits.end();
      if (word == fits.end()) word = std::find(fits.begin(), fits.end(), "");
      if (word == fits.end()) word = fits.begin() + static_cast<std::ptrdiff_t>(turn % fits.size());
      met.insert({i, *word});
      if (!word->empty()) text += " " + *word;
    }
    if (!is_new) return;
    add(text);
  }
}

}  // namespace assay::conformance
