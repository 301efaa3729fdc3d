#include "conformance/diagnose/explain/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "conformance/judge/compare/compare.h"

namespace assay::conformance::explaining {
namespace {

using Spots = std::vector<Spot>;

// A number that orders elements.
struct Axis {
  std::string name, each;  // "row", "rows"
  std::function<std::int64_t(const Spot&)> of;
  int cost;
  bool counts = false;  // counted from the end: "the last N"
};

// Values along an axis.
struct Values {
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  std::set<std::int64_t> some;  // at most kSome + 1
  static constexpr std::size_t kSome = 4096;
  void add(std::int64_t value) {
    least = std::min(least, value), most = std::max(most, value);
    if (some.size() <= kSome) some.insert(value);
  }
  bool known() const { return some.size() <= kSome; }
};

// The roundest number in (low, high].
std::int64_t roundest(std::int64_t low, std::int64_t high) {
  for (std::int64_t power = std::int64_t{1} << 40; power > 1; power /= 2) {
    const std::int64_t candidate = high / power * power;
    if (candidate > low && candidate > 0) return candidate;
  }
  return high;
}

std::optional<Region> along(const Axis& axis, const Spots& inside, const Spots& outside) {
  Values in, out;
  for (const Spot& spot : inside) in.add(axis.of(spot));
  for (const Spot& spot : outside) out.add(axis.of(spot));
  std::int64_t below = INT64_MIN, above = INT64_MAX;  // nearest values outside
  bool between = false;
  for (const Spot& spot : outside) {
    const std::int64_t value = axis.of(spot);
    if (value < in.least) below = std::max(below, value);
    if (value > in.most) above = std::min(above, value);
    between = between || (value >= in.least && value <= in.most);
  }
  if (!between) {
    const bool first = below == INT64_MIN, last = above == INT64_MAX;
    if (axis.counts) {
      if (!first) return std::nullopt;
      return Region{in.most == 0 ? fmt::format("in the last {} of each group", axis.name)
                                 : fmt::format("in the last {} {} of each group", in.most + 1, axis.each),
                    axis.cost};
    }
    if (in.least == in.most) return Region{fmt::format("in {} {} only", axis.name, in.least), axis.cost};
    if (last) return Region{fmt::format("from {} {} on", axis.name, roundest(below, in.least)), axis.cost};
    if (first) return Region{fmt::format("below {} {}", axis.name, roundest(in.most, above)), axis.cost};
    return Region{fmt::format("in {} {} to {}", axis.each, in.least, in.most), axis.cost + 2};
  }
  if (axis.counts || !in.known() || !out.known()) return std::nullopt;
  // Every second, fourth ...; and every second block of so many.
  for (const std::int64_t period : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
    for (std::int64_t block = period / 2; block >= 1; block = period == 2 ? 0 : (block == 1 ? 0 : 1)) {
      std::set<std::int64_t> classes;
      for (const std::int64_t value : in.some) classes.insert(value % period / block);
      if (classes.size() != 1) continue;
      const std::int64_t which = *classes.begin();
      const bool clean =
          std::none_of(out.some.begin(), out.some.end(), [&](std::int64_t value) { return value % period / block == which; });
      if (!clean) continue;
      if (block == 1) return Region{fmt::format("in {} {} of every {}", axis.name, which, period), axis.cost + 4};
      return Region{
          fmt::format("in every second block of {} {}, the {} of two", block, axis.each, which == 0 ? "first" : "second"),
          axis.cost + 4};
    }
  }
  const bool disjoint =
      std::none_of(in.some.begin(), in.some.end(), [&](std::int64_t value) { return out.some.count(value) != 0; });
  if (!disjoint || in.some.size() > 8) return std::nullopt;
  std::string list;
  for (const std::int64_t value : in.some) list += (list.empty() ? "" : ",") + std::to_string(value);
  return Region{fmt::format("in {} {} only", axis.each, list), axis.cost + 4 * static_cast<int>(in.some.size())};
}

// Numbers of tiles over all groups, by rows of tiles or by columns.
class Tiles {
 public:
  Tiles(const OutputMap& map, std::int64_t height, std::int64_t width, bool by_rows)
      : height_(height), width_(width), by_rows_(by_rows) {
    std::int64_t first = 0;
    for (const Segment& segment : map.segments) {
      const auto group = static_cast<std::size_t>(std::max<std::int64_t>(segment.group, 0));
      if (first_.size() <= group) first_.resize(group + 1, first);
      first_[group] = first;
      first += up(segment.used_rows, height) * up(segment.used_columns, width);
    }
    total_ = first;
  }
  std::int64_t total() const { return total_; }
  std::int64_t operator()(const Spot& spot) const {
    if (spot.group < 0 || static_cast<std::size_t>(spot.group) >= first_.size()) return -1;
    const std::int64_t i = spot.row / height_, j = spot.column / width_;
    const std::int64_t within = by_rows_ ? i * up(spot.columns, width_) + j : j * up(spot.rows, height_) + i;
    return first_[static_cast<std::size_t>(spot.group)] + within;
  }

 private:
  static std::int64_t up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
  std::int64_t height_, width_, total_ = 0;
  bool by_rows_;
  std::vector<std::int64_t> first_;
};

std::optional<Region> by_tiles(const FailedOutput& output, const Spots& inside, const Spots& outside) {
  for (const std::int64_t height : {128, 64, 256, 32, 16, 8}) {
    for (const std::int64_t width : {128, 64, 256, 32, 16, 8}) {
      for (const bool by_rows : {true, false}) {
        const Tiles tiles(output.map, height, width, by_rows);
        if (tiles.total() < 3) continue;
        const Axis axis{"tile", "tiles", [&](const Spot& spot) { return tiles(spot); }, 10};
        auto found = along(axis, inside, outside);
        if (!found) continue;
        found->text += fmt::format(" (tiles of {} x {}, numbered {} over the groups)", height, width,
                                   by_rows ? "along rows" : "down columns");
        return found;
      }
    }
  }
  return std::nullopt;
}

// A box in group, row and column, as large as it can be.
std::optional<Region> by_box(const FailedOutput& output, const Spots& inside, const Spots& outside) {
  struct Side {
    std::string name, names;
    std::int64_t (*of)(const Spot&);
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    bool low = true, high = true;  // bounds that are needed
    bool holds(const Spot& spot) const {
      const std::int64_t value = of(spot);
      return (!low || value >= least) && (!high || value <= most);
    }
  };
  const std::string row = output.map.row_name.empty() ? "row" : output.map.row_name;
  const std::string column = output.map.column_name.empty() ? "column" : output.map.column_name;
  Side sides[] = {{"group", "groups", [](const Spot& spot) { return spot.group; }},
                  {row, row + "s", [](const Spot& spot) { return spot.row; }},
                  {column, column + "s", [](const Spot& spot) { return spot.column; }}};
  for (const Spot& spot : inside) {
    for (Side& side : sides) side.least = std::min(side.least, side.of(spot)), side.most = std::max(side.most, side.of(spot));
  }
  const auto clean = [&] {
    return std::none_of(outside.begin(), outside.end(),
                        [&](const Spot& spot) { return sides[0].holds(spot) && sides[1].holds(spot) && sides[2].holds(spot); });
  };
  if (!clean()) return std::nullopt;
  int cost = 6;
  std::string text;
  for (Side& side : sides) {
    side.low = false;
    if (!clean()) side.low = true;
    side.high = false;
    if (!clean()) side.high = true;
    if (!side.low && !side.high) continue;
    cost += 4;
    text += text.empty() ? "in " : ", ";
    if (side.least == side.most && side.low && side.high) {
      text += fmt::format("{} {}", side.name, side.least);
    } else if (side.low && side.high) {
      text += fmt::format("{} {} to {}", side.names, side.least, side.most);
    } else {
      text +=
          side.low ? fmt::format("{} {} and later", side.names, side.least) : fmt::format("{} 0 to {}", side.names, side.most);
    }
  }
  return Region{text, cost};
}

// What a group has past a multiple of some block, in each of them.
std::optional<Region> by_tail(const std::string& name, std::int64_t (*place)(const Spot&), std::int64_t (*extent)(const Spot&),
                              const Spots& inside, const Spots& outside) {
  for (std::int64_t block = 256; block >= 2; block /= 2) {
    const auto is_tail = [&](const Spot& spot) { return place(spot) >= extent(spot) / block * block; };
    if (std::all_of(inside.begin(), inside.end(), is_tail) && std::none_of(outside.begin(), outside.end(), is_tail))
      return Region{fmt::format("in the {}s past the last multiple of {} of each group", name, block), 7};
  }
  return std::nullopt;
}

// By the right words themselves.
std::optional<Region> by_value(const FailedOutput& output, const Spots& inside, const Spots& outside) {
  const Format type = output.want.type;
  const Elements want(output.want);
  struct Kind {
    const char* text;
    std::function<bool(std::uint64_t)> holds;
  };
  const auto value = [&](std::uint64_t bits) { return is_floating(type) || type == Format::e8m0 ? value_of(type, bits) : 1.0; };
  const Kind kinds[] = {
      {"where the right word is NaN", [&](std::uint64_t bits) { return is_nan(type, bits); }},
      {"where the right word is not finite", [&](std::uint64_t bits) { return !is_finite(type, bits); }},
      {"where the right word is 0", [&](std::uint64_t bits) { return is_zero(type, bits); }},
      {"where the right word is negative", [&](std::uint64_t bits) { return is_floating(type) && value(bits) < 0; }},
      {"where the right word is positive", [&](std::uint64_t bits) { return is_floating(type) && value(bits) > 0; }},
  };
  for (const Kind& kind : kinds) {
    const auto holds = [&](const Spot& spot) { return kind.holds(want[spot.element]); };
    if (std::all_of(inside.begin(), inside.end(), holds) && std::none_of(outside.begin(), outside.end(), holds))
      return Region{kind.text, 6};
  }
  std::set<std::uint64_t> in, out;
  for (const Spot& spot : inside) {
    in.insert(want[spot.element]);
    if (in.size() > 2) return std::nullopt;
  }
  for (const Spot& spot : outside) {
    if (in.count(want[spot.element]) != 0) return std::nullopt;
  }
  std::string list;
  for (const std::uint64_t bits : in) list += (list.empty() ? "" : " or ") + show_element(type, bits);
  return Region{"where the right word is " + list, 8};
}

}  // namespace

std::optional<Region> find_region(const FailedOutput& output, std::span<const std::int64_t> inside,
                                  std::span<const std::int64_t> outside) {
  Spots in, out;
  for (const std::int64_t at : inside) in.push_back(output.spot_of(at));
  for (const std::int64_t at : outside) out.push_back(output.spot_of(at));
  const std::string row = output.map.row_name.empty() ? "row" : output.map.row_name;
  const std::string column = output.map.column_name.empty() ? "column" : output.map.column_name;
  const bool many_groups = output.map.segments.size() > 1;
  std::vector<Axis> axes;
  if (many_groups) axes.push_back({"group", "groups", [](const Spot& spot) { return spot.group; }, 3});
  axes.push_back({row, row + "s", [](const Spot& spot) { return spot.row; }, 5});
  axes.push_back({column, column + "s", [](const Spot& spot) { return spot.column; }, 5});
  axes.push_back({row, row + "s", [](const Spot& spot) { return spot.rows - 1 - spot.row; }, 5, true});
  axes.push_back({column, column + "s", [](const Spot& spot) { return spot.columns - 1 - spot.column; }, 5, true});
  if (many_groups)
    axes.push_back({"groups whose rows number", "groups whose rows number", [](const Spot& spot) { return spot.rows; }, 5});
  std::optional<Region> best;
  const auto take = [&](std::optional<Region> found) {
    if (found && (!best || found->cost < best->cost)) best = std::move(found);
  };
  for (const Axis& axis : axes) take(along(axis, in, out));
  if (!best) {
    take(by_tail(
        row, [](const Spot& spot) { return spot.row; }, [](const Spot& spot) { return spot.rows; }, in, out));
    take(by_tail(
        column, [](const Spot& spot) { return spot.column; }, [](const Spot& spot) { return spot.columns; }, in, out));
  }
  if (best) return best;
  take(by_value(output, in, out));
  take(by_tiles(output, in, out));
  take(by_box(output, in, out));
  return best;
}

}  // namespace assay::conformance::explaining
