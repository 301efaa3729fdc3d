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

using Row = std::vector<std::size_t>;  // which value of each axis

// The pairs of values of two axes that no line has yet, in the order of (axis, value, later axis, its value).
class OpenPairs {
 public:
  explicit OpenPairs(const std::vector<Axis>& axes) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      begin_.push_back(values_.size());
      for (std::size_t i = 0; i < axes[a].size(); ++i) values_.push_back({a, i});
    }
    open_.assign(values_.size() * values_.size(), 0);
    for (std::size_t one = 0; one < values_.size(); ++one) {
      for (std::size_t other = one; other < values_.size(); ++other)
        open_[place(one, other)] = values_[one].axis < values_[other].axis;
    }
  }

  // The first that is open is written into `row`; false: none is.
  bool first(Row& row) {
    while (first_ < open_.size() && open_[first_] == 0) ++first_;
    if (first_ == open_.size()) return false;
    const Value one = values_[first_ / values_.size()], other = values_[first_ % values_.size()];
    row[one.axis] = one.value;
    row[other.axis] = other.value;
    return true;
  }
  void close_first() { open_[first_] = 0; }
  // How many pairs of `row` are open.
  int count(const Row& row) const {
    int found = 0;
    for (std::size_t a = 0; a < row.size(); ++a) {
      for (std::size_t b = a + 1; b < row.size(); ++b) found += open_[place(begin_[a] + row[a], begin_[b] + row[b])];
    }
    return found;
  }
  void close(const Row& row) {
    for (std::size_t a = 0; a < row.size(); ++a) {
      for (std::size_t b = a + 1; b < row.size(); ++b) open_[place(begin_[a] + row[a], begin_[b] + row[b])] = 0;
    }
  }

 private:
  struct Value {
    std::size_t axis, value;
  };
  std::size_t place(std::size_t one, std::size_t other) const { return one * values_.size() + other; }

  std::vector<Value> values_;       // of all axes, one axis after another
  std::vector<std::size_t> begin_;  // of each axis in values_
  std::vector<char> open_;
  std::size_t first_ = 0;  // none before it is open
};

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
  OpenPairs open(axes);
  std::set<Row> refused;  // whatever the seed: drawn again and again where two values exclude one another
  const CounterRandom random(static_cast<std::uint64_t>(first_seed), "covering");
  std::uint64_t draw = 0;
  std::vector<CaseLine> lines;
  for (Row row(axes.size()); open.first(row);) {
    std::optional<CaseLine> best;
    Row best_row;
    int best_gain = -1;
    for (int attempt = 0, valid = 0; attempt < 48 && valid < 4; ++attempt) {
      for (std::size_t a = 0; a < axes.size(); ++a) {
        const std::size_t drawn = random.below(draw++, static_cast<std::uint32_t>(axes[a].size()));
        const bool first = attempt >= 12 && random.below(draw++, attempt < 24 ? 2 : 8) != 0;
        row[a] = first ? 0 : drawn;
      }
      open.first(row);
      const int gain = open.count(row);
      if (gain <= best_gain || refused.contains(row)) continue;
      std::optional<CaseLine> line = line_of(prefix, axes, row, first_seed + static_cast<int>(lines.size()), limits);
      if (!line) {
        refused.insert(row);
        continue;
      }
      ++valid;
      best = std::move(line);
      best_row = row;
      best_gain = gain;
    }
    if (!best) {  // the two exclude one another
      open.close_first();
      continue;
    }
    open.close(best_row);
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
