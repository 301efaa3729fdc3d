#include "conformance/compare/hints.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "reference/support/error.h"

namespace assay::conformance {
namespace {

const Segment& segment_of(const Evidence& e, const Mismatch& m) { return e.map.segments[m.segment]; }

std::string place_of(const OutputMap& map, const Segment& segment, std::int64_t offset) {
  const Coordinates at = coordinates_of(segment, offset);
  std::string text = map.grouped ? "group " + show(segment.group) : "";
  if (!map.row_name.empty()) text += (text.empty() ? "" : ", ") + map.row_name + " " + show(at.row);
  if (!map.column_name.empty()) text += (text.empty() ? "" : ", ") + map.column_name + " " + show(at.column);
  return text;
}

template <class Holds>
std::int64_t count_if(const Evidence& e, Holds holds) {
  return std::count_if(e.mismatches.begin(), e.mismatches.end(), holds);
}

// "all 12" or "3 of 12".
std::string share(std::int64_t part, std::size_t all) {
  return part == static_cast<std::int64_t>(all) ? "all " + show(part) : show(part) + " of " + show(all);
}

// Bytes in a row that hold what was there before: a value that is computed does not look like that by chance.
constexpr std::int64_t kRun = 8;

// Whether `run` bytes in a row, all alike, stand anywhere in the tensor.
bool holds_run(const Elements& elements, std::int64_t count, std::byte value, std::int64_t run) {
  std::int64_t length = 0;
  const std::int64_t bytes = count * elements.bits / 8;
  for (std::int64_t i = 0; i < bytes; ++i) {
    length = elements.bytes[i] == value ? length + 1 : 0;
    if (length == run) return true;
  }
  return false;
}

// Words that were not written. Where the call was made over two contents: those that follow both. With one run, or where
// only this one left the word alone: those in a run of bytes that no answer holds. Bytes of 0xFF are no evidence by themselves:
// a code, -1, or a NaN that came from memory that was read.
class Unwritten {
 public:
  explicit Unwritten(const Evidence& e) : e_(e) {
    if (!e.has_before || e.map.elements == 0) return;
    value_ = e.before.bytes[0];
    run_ = std::max<std::int64_t>(kRun, 2 * e.want.bits / 8);
    trusts_runs_ = value_ != std::byte{0xFF} && !holds_run(e.want, e.map.elements, value_, run_);
  }
  bool operator()(const Mismatch& m) const {
    const Segment& s = segment_of(e_, m);
    const std::int64_t at = s.first + m.offset;
    if (e_.before[at] != m.got) return false;
    if (e_.other.is_known) {
      if (e_.other.got[at] == e_.other.before[at] && e_.other.before[at] != e_.before[at]) return true;
      if (e_.other.got[at] == m.got) return false;
    }
    return trusts_runs_ && in_run(s, at);
  }

 private:
  bool in_run(const Segment& s, std::int64_t at) const {
    const std::int64_t most = std::max<std::int64_t>(run_ * 8 / e_.want.bits, 2);
    const auto left_alone = [&](std::int64_t i) {
      if (i < s.first || i >= s.first + s.elements()) return false;
      const Coordinates place = coordinates_of(s, i - s.first);
      return place.row < s.used_rows && place.column < s.used_columns && e_.got[i] == e_.before[i] && e_.want[i] != e_.got[i];
    };
    std::int64_t count = 1;
    for (const int step : {-1, 1}) {
      for (std::int64_t i = at + step; count < most && left_alone(i); i += step) ++count;
    }
    return count >= most;
  }

  const Evidence& e_;
  std::byte value_{};
  std::int64_t run_ = kRun;
  bool trusts_runs_ = false;
};

std::string poison_left(const Evidence& e) {
  if (!e.has_before) return "";
  const Unwritten unwritten(e);
  const std::int64_t left = count_if(e, [&](const Mismatch& m) { return unwritten(m); });
  if (left == 0) return "";
  return "not written: " + share(left, e.mismatches.size()) + " still hold what was there before the call";
}

std::string zero_signs(const Evidence& e) {
  const bool all = count_if(e, [&](const Mismatch& m) { return is_zero(e.want.type, m.got) && is_zero(e.want.type, m.want); }) ==
                   static_cast<std::int64_t>(e.mismatches.size());
  return all && is_floating(e.want.type) ? "only the sign of zero differs (zero_sign=free would allow it)" : "";
}

std::string nans(const Evidence& e) {
  const Format type = e.want.type;
  const std::int64_t nan = count_if(e, [&](const Mismatch& m) { return is_nan(type, m.got) && !is_nan(type, m.want); });
  const std::int64_t number = count_if(e, [&](const Mismatch& m) { return !is_nan(type, m.got) && is_nan(type, m.want); });
  if (nan > 0) return "NaN where a number is expected: " + share(nan, e.mismatches.size());
  if (number > 0) return "a number where NaN is expected: " + share(number, e.mismatches.size());
  return "";
}

std::string one_step(const Evidence& e) {
  if (!is_floating(e.want.type) && e.want.type != Format::e8m0) return "";
  const auto near = [&](const Mismatch& m) {
    if (!is_finite(e.want.type, m.got) || !is_finite(e.want.type, m.want)) return false;
    if (e.want.type == Format::e8m0) return m.got + 1 == m.want || m.want + 1 == m.got;
    return ulp_distance(e.want.type, m.got, m.want) == 1;
  };
  if (count_if(e, near) != static_cast<std::int64_t>(e.mismatches.size())) return "";
  const std::int64_t above = count_if(e, [&](const Mismatch& m) { return std::fabs(value_of(e.want.type, m.got)) > std::fabs(value_of(e.want.type, m.want)); });
  if (e.want.type == Format::e8m0) {
    const std::string ways = above == static_cast<std::int64_t>(e.mismatches.size()) ? "twice" : above == 0 ? "half" : "twice or half";
    return "every wrong scale is " + ways + " the expected one: its exponent is off by one";
  }
  const std::string way = above == static_cast<std::int64_t>(e.mismatches.size()) ? ", always away from zero"
                          : above == 0 ? ", always toward zero" : "";
  return "every difference is one unit in the last place" + way + ": a rounding";
}

// Every wrong e2m1 byte holds the wanted codes in the other nibbles.
std::string nibbles(const Evidence& e) {
  if (e.want.type != Format::e2m1) return "";
  for (const Mismatch& m : e.mismatches) {
    const std::int64_t at = segment_of(e, m).first + m.offset, other = at ^ 1;
    if (other >= e.map.elements || e.got[at] != e.want[other] || e.got[other] != e.want[at]) return "";
  }
  return "high and low nibble are swapped";
}

// What the wrong elements equal when read elsewhere: `source` gives the place in the expected tensor, or -1.
template <class Source>
bool explained(const Evidence& e, Source source) {
  for (const Mismatch& m : e.mismatches) {
    const std::int64_t at = source(m);
    if (at < 0 || e.want[at] != m.got) return false;
  }
  // An explanation by chance: two or three values that happen to be equal.
  std::set<std::uint64_t> distinct;
  for (const Mismatch& m : e.mismatches) distinct.insert(m.got);
  return e.mismatches.size() >= 4 && distinct.size() >= 2;
}

// The group's elements stand where those of its transpose would.
std::string transposed(const Evidence& e) {
  const bool all = explained(e, [&](const Mismatch& m) -> std::int64_t {
    const Segment& s = segment_of(e, m);
    if (s.swizzle != Swizzle::none || s.used_rows != s.rows || s.used_columns != s.columns || s.rows < 2 || s.columns < 2) return -1;
    return s.first + m.offset % s.rows * s.columns + m.offset / s.rows;
  });
  return all ? "each group is transposed" : "";
}

std::string another_group(const Evidence& e) {
  // For each wrong group, the groups that explain all its wrong elements so far.
  std::map<std::size_t, std::vector<std::size_t>> candidates;
  for (const Mismatch& m : e.mismatches) {
    const auto [entry, fresh] = candidates.try_emplace(m.segment);
    if (fresh) {
      for (std::size_t g = 0; g < e.map.segments.size() && g < 4096; ++g) {
        if (g != m.segment) entry->second.push_back(g);
      }
    }
    const Segment& own = segment_of(e, m);
    const Coordinates at = coordinates_of(own, m.offset);
    std::erase_if(entry->second, [&](std::size_t g) {
      const Segment& other = e.map.segments[g];
      if (at.row >= other.used_rows || at.column >= other.used_columns) return true;
      return e.want[other.first + offset_of(other, at)] != m.got;
    });
  }
  std::string text;
  int told = 0;
  for (const auto& [segment, groups] : candidates) {
    if (groups.empty()) return "";
    if (++told > 4) continue;
    text += (text.empty() ? "" : ", ") + std::string("group ") + show(e.map.segments[segment].group) + " has those of group " +
            show(e.map.segments[groups[0]].group);
  }
  std::set<std::uint64_t> distinct;
  for (const Mismatch& m : e.mismatches) distinct.insert(m.got);
  const bool by_chance = e.mismatches.size() < 4 || distinct.size() < 2;
  if (text.empty() || (by_chance && !e.map.is_scale)) return "";
  return "values of another group: " + text + (told > 4 ? ", ..." : "");
}

std::string shifted(const Evidence& e) {
  for (const auto& [rows, columns, text] :
       {std::tuple{1, 0, "the row after"}, {-1, 0, "the row before"}, {0, 1, "the column after"}, {0, -1, "the column before"}}) {
    const bool all = explained(e, [&, rows = rows, columns = columns](const Mismatch& m) -> std::int64_t {
      const Segment& s = segment_of(e, m);
      Coordinates at = coordinates_of(s, m.offset);
      at.row += rows, at.column += columns;
      if (at.row < 0 || at.column < 0 || at.row >= s.used_rows || at.column >= s.used_columns) return -1;
      return s.first + offset_of(s, at);
    });
    if (all) return std::string("values of ") + text;
  }
  return "";
}

std::string another_block(const Evidence& e) {
  if (!e.map.is_scale) return "";
  std::unordered_map<std::uint64_t, std::pair<std::size_t, std::int64_t>> first_with;
  for (std::size_t g = 0; g < e.map.segments.size(); ++g) {
    const Segment& s = e.map.segments[g];
    for (std::int64_t offset = 0; offset < s.elements(); ++offset) {
      const Coordinates at = coordinates_of(s, offset);
      if (at.row < s.used_rows && at.column < s.used_columns) first_with.try_emplace(e.want[s.first + offset], g, offset);
    }
  }
  for (const Mismatch& m : e.mismatches) {
    if (!first_with.count(m.got)) return "";
  }
  const auto& [g, offset] = first_with.at(e.mismatches[0].got);
  return "scale of another block: the first wrong one is expected at " + place_of(e.map, e.map.segments[g], offset);
}

std::string one_factor(const Evidence& e) {
  if (!is_floating(e.want.type)) return "";
  double factor = 0;
  for (const Mismatch& m : e.mismatches) {
    if (!is_finite(e.want.type, m.got) || !is_finite(e.want.type, m.want)) return "";
    const double got = value_of(e.want.type, m.got), want = value_of(e.want.type, m.want);
    if (want == 0 || got == 0) return "";
    int exponent;
    if (factor == 0) factor = got / want;
    if (std::fabs(std::frexp(factor, &exponent)) != 0.5 || got != want * factor) return "";
  }
  if (e.mismatches.size() < 4) return "";
  return "every wrong value is the expected one times " + show(factor) + ": a scale";
}

std::string all_zero(const Evidence& e) {
  const bool all = e.mismatches.size() >= 4 && count_if(e, [](const Mismatch& m) { return m.got == 0; }) ==
                                                   static_cast<std::int64_t>(e.mismatches.size());
  return all ? "every wrong value is 0" : "";
}

}  // namespace

std::vector<std::string> hints_for(const Evidence& evidence) {
  std::vector<std::string> hints;
  if (evidence.mismatches.empty()) return hints;
  for (const auto& hint : {poison_left, zero_signs, nans, nibbles, one_step, transposed, another_group, shifted, another_block,
                           one_factor, all_zero}) {
    std::string text = hint(evidence);
    if (!text.empty() && hints.size() < 3) hints.push_back(std::move(text));
  }
  return hints;
}

}  // namespace assay::conformance
