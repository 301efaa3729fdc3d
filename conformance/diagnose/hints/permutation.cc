// Values of the same tensor in another order: transposed, rows or columns exchanged.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kLookedAt = 1024;  // elements that an order of rows or columns is inferred from
constexpr std::int32_t kSupport = 3;     // elements that must agree on each row or column of it

std::int64_t explained_by(const WrongOutput& e, std::span<const Word> sample, auto source) {
  return std::count_if(sample.begin(), sample.end(), [&](const Word& w) {
    const std::int64_t from = source(w);
    return from >= 0 && e.want[from] == w.got;
  });
}

// Each group's elements stand where those of its transpose would.
void propose_transposed_groups(const WrongOutput& e, Hypotheses& hypotheses) {
  Claim claim;
  claim.least_share = 0.25;
  propose_relocation(
      hypotheses, e, claim,
      [&e](const Word& w) -> std::int64_t {
        const Segment& s = e.map.segments[w.segment];
        const bool whole = s.swizzle == Swizzle::none && s.used_rows == s.rows && s.used_columns == s.columns;
        if (!whole || s.rows < 2 || s.columns < 2) return -1;
        return s.first + w.offset % s.rows * s.columns + w.offset / s.rows;
      },
      [](const Tally& tally) { return "each group is transposed: " + share_text(tally); });
}

void propose_transposed_tiles(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  for (const std::int64_t size : {4, 8, 16, 32, 64, 128, 256}) {
    const auto source = [&e, size](const Word& w) {
      const std::int64_t row = w.at.row % size, column = w.at.column % size;
      return e.element_at(w.segment, {w.at.row - row + column, w.at.column - column + row});
    };
    if (explained_by(e, sample, source) * 4 < static_cast<std::int64_t>(sample.size())) continue;
    Claim claim;
    claim.least_share = 0.25;
    claim.log_choices = std::log(7.0);
    propose_relocation(hypotheses, e, claim, source, [size](const Tally& tally) {
      const std::string extent = show(size);
      return "tiles of " + extent + "x" + extent + " are transposed: " + share_text(tally);
    });
  }
}

// Chunks of 16 bytes within a row, exchanged by the row's number as shared memory is swizzled.
void propose_swizzled_chunks(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  const std::int64_t chunk = 128 / e.want.bits;
  for (const std::int64_t chunks : {8, 4, 2}) {
    const auto source = [&e, chunk, chunks](const Word& w) {
      const std::int64_t key = w.at.row / (8 / chunks) % chunks;
      return e.element_at(w.segment, {w.at.row, ((w.at.column / chunk) ^ key) * chunk + w.at.column % chunk});
    };
    if (explained_by(e, sample, source) * 4 < static_cast<std::int64_t>(sample.size())) continue;
    Claim claim;
    claim.log_choices = std::log(3.0);
    propose_relocation(hypotheses, e, claim, source, [chunks](const Tally& tally) {
      const std::string bytes = show(16 * chunks);
      return "chunks of 16 bytes are exchanged as in shared memory swizzled by " + bytes + " bytes: " + share_text(tally);
    });
  }
}

// One order of rows, or of columns, within every `size` of them. order[i]: whose values number i has; -1: its own, or unknown.
struct Order {
  bool of_rows = false;
  std::int64_t size = 0;
  std::vector<std::int64_t> order;
  std::int64_t explained = 0;

  std::int64_t source(const WrongOutput& e, const Word& w) const {
    const std::int64_t at = of_rows ? w.at.row : w.at.column, within = at % size, other = order[static_cast<std::size_t>(within)];
    if (other < 0) return -1;
    Coordinates from = w.at;
    (of_rows ? from.row : from.column) += other - within;
    return e.element_at(w.segment, from);
  }
};

std::size_t step_of(std::span<const Word> sample) { return std::max<std::size_t>(1, sample.size() / kLookedAt); }

Order order_of(const WrongOutput& e, std::span<const Word> sample, bool of_rows, std::int64_t size) {
  Order order{of_rows, size, std::vector<std::int64_t>(static_cast<std::size_t>(size), -1), 0};
  std::vector<std::int32_t> votes(static_cast<std::size_t>(size * size));
  const std::size_t step = step_of(sample);
  for (std::size_t n = 0; n < sample.size(); n += step) {
    const Word& w = sample[n];
    const std::int64_t at = of_rows ? w.at.row : w.at.column, within = at % size;
    for (std::int64_t other = 0; other < size; ++other) {
      Coordinates from = w.at;
      (of_rows ? from.row : from.column) += other - within;
      const std::int64_t element = e.element_at(w.segment, from);
      if (element >= 0 && e.want[element] == w.got) ++votes[static_cast<std::size_t>(within * size + other)];
    }
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const auto row = votes.begin() + i * size;
    const auto most = std::max_element(row, row + size);
    if (*most < kSupport) continue;
    order.order[static_cast<std::size_t>(i)] = most - row;
    order.explained += *most;
  }
  order.explained *= static_cast<std::int64_t>(step);
  return order;
}

std::string order_text(const OutputMap& map, const Order& order) {
  const std::string& given = order.of_rows ? map.row_name : map.column_name;
  const std::string name = given.empty() ? (order.of_rows ? "row" : "column") : given;
  std::vector<std::pair<std::int64_t, std::int64_t>> moved;
  for (std::int64_t i = 0; i < order.size; ++i) {
    const std::int64_t other = order.order[static_cast<std::size_t>(i)];
    if (other >= 0) moved.emplace_back(i, other);
  }
  const auto always = [&](auto relation) { return std::all_of(moved.begin(), moved.end(), relation); };
  const std::int64_t mask = moved[0].first ^ moved[0].second, by = (moved[0].second - moved[0].first + order.size) % order.size;
  const std::string plural = name == "k" ? "k" : name == "index" ? "indices" : name + "s";
  if (moved.size() > 1 && always([&](const auto& each) { return (each.first ^ each.second) == mask; })) {
    return plural + " are exchanged: " + name + " i has the values of " + name + " i xor " + show(mask);
  }
  if (moved.size() > 2 && always([&](const auto& each) { return (each.second - each.first + order.size) % order.size == by; })) {
    return plural + " are rotated by " + show(by) + " within every " + show(order.size);
  }
  std::string list;
  for (std::size_t i = 0; i < std::min<std::size_t>(moved.size(), 4); ++i) {
    list += (list.empty() ? "" : ", ") + show(moved[i].first) + " has those of " + show(moved[i].second);
  }
  return plural + " are in another order within every " + show(order.size) + ": " + list + (moved.size() > 4 ? ", ..." : "");
}

void propose_orders(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  for (const bool of_rows : {true, false}) {
    std::int64_t before = 0;
    for (const std::int64_t size : {2, 4, 8, 16, 32, 64, 128}) {
      Order order = order_of(e, sample, of_rows, size);
      hypotheses.places += static_cast<std::int64_t>(sample.size() / step_of(sample)) * size;
      // A more specific order must explain more.
      if (order.explained * 4 < static_cast<std::int64_t>(sample.size()) || order.explained <= before + before / 32) continue;
      before = order.explained;
      Claim claim;
      claim.least_share = 0.25;
      const auto learned = std::count_if(order.order.begin(), order.order.end(), [](std::int64_t other) { return other >= 0; });
      claim.log_choices = static_cast<double>(learned) * std::log(static_cast<double>(size));
      const std::string text = order_text(e.map, order);
      propose_relocation(
          hypotheses, e, claim, [&e, order = std::move(order)](const Word& w) { return order.source(e, w); },
          [text](const Tally& tally) { return text + ": " + share_text(tally); });
    }
  }
}

void propose_nibbles(const WrongOutput& e, Hypotheses& hypotheses) {
  if (e.want.type != Format::e2m1) return;
  propose_relocation(
      hypotheses, e, {}, [&e](const Word& w) -> std::int64_t { return (w.element ^ 1) < e.map.elements ? w.element ^ 1 : -1; },
      [](const Tally& tally) { return "high and low nibble are exchanged: " + share_text(tally); });
}

}  // namespace

void propose_permutations(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (sample.size() < 4) return;
  propose_nibbles(e, hypotheses);
  propose_transposed_groups(e, hypotheses);
  propose_transposed_tiles(e, sample, hypotheses);
  propose_swizzled_chunks(e, sample, hypotheses);
  propose_orders(e, sample, hypotheses);
}

}  // namespace assay::conformance
