// Values of another place at a constant distance: another row, column or block, another group.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kWindow = std::int64_t{1} << 18;  // places on either side of an element that are searched
constexpr std::size_t kAnchors = 6, kTried = 24;         // elements that a displacement is searched from, and tested on
constexpr std::size_t kMaxCandidates = 64;
constexpr std::size_t kMaxGroups = 32;  // wrong groups whose values are searched for

struct Displacement {
  std::int64_t rows = 0, columns = 0;
  std::int64_t length() const { return std::abs(rows) + std::abs(columns); }
  auto operator<=>(const Displacement&) const = default;
};

// Whether the rows of each group follow those of the group before.
bool is_one_matrix(const OutputMap& map) {
  return std::all_of(map.segments.begin(), map.segments.end(), [&](const Segment& s) {
    const bool whole = s.used_rows == s.rows && s.used_columns == s.columns;
    return whole && s.swizzle == Swizzle::none && s.columns == map.segments.front().columns;
  });
}

// The source of an element under a displacement. Past the rows of its group: in the next group, if groups lie in one matrix.
std::int64_t source_of(const WrongOutput& e, const Word& w, Displacement by, bool one_matrix) {
  const Segment& s = e.map.segments[w.segment];
  const Coordinates at{w.at.row + by.rows, w.at.column + by.columns};
  if (e.is_used(s, at)) return s.first + offset_of(s, at);
  if (!one_matrix || at.column < 0 || at.column >= s.columns) return -1;
  const std::int64_t element = s.first + at.row * s.columns + at.column;
  const Segment& last = e.map.segments.back();
  return element >= 0 && element < last.first + last.elements() ? element : -1;
}

// Every displacement that explains this element, within its group. Returns the number of places searched.
template <class Visit>
std::int64_t places_of(const WrongOutput& e, const Word& w, Visit visit) {
  const Segment& s = e.map.segments[w.segment];
  const std::int64_t begin = std::max<std::int64_t>(0, w.offset - kWindow), end = std::min(s.elements(), w.offset + kWindow);
  for (std::int64_t offset = begin; offset < end; ++offset) {
    if (e.want[s.first + offset] != w.got || offset == w.offset) continue;
    const Coordinates at = coordinates_of(s, offset);
    if (e.is_used(s, at)) visit(Displacement{at.row - w.at.row, at.column - w.at.column});
  }
  return end - begin;
}

std::string steps_text(std::int64_t by, const std::string& name) {
  const std::string way = by > 0 ? " after" : " before", what = name.empty() ? "place" : name;
  if (by == 1 || by == -1) return "the " + what + way;
  return show(std::abs(by)) + " " + (what == "index" ? "indices" : what == "k" ? "k" : what + "s") + way;
}

std::string displacement_text(const OutputMap& map, Displacement by) {
  std::string text;
  if (by.rows != 0) text = steps_text(by.rows, map.row_name);
  if (by.columns != 0) text += (text.empty() ? "" : " and ") + steps_text(by.columns, map.column_name);
  return text;
}

}  // namespace

void propose_displacements(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (sample.size() < 4) return;
  const bool one_matrix = is_one_matrix(e.map);
  const auto explains = [&](Displacement by, const Word& w) {
    const std::int64_t from = source_of(e, w, by, one_matrix);
    return from >= 0 && e.want[from] == w.got;
  };
  std::vector<const Word*> tried;
  const std::size_t count = std::min(kTried, sample.size());
  for (std::size_t i = 0; i < count; ++i) tried.push_back(&sample[i * sample.size() / count]);
  std::map<Displacement, std::size_t> found;  // and how many of the tested elements it explains
  double candidates = 1;
  for (std::size_t a = 0; a < std::min(kAnchors, count); ++a) {
    const Word& anchor = *tried[(2 * a + 1) * count / (2 * std::min(kAnchors, count))];
    hypotheses.places += places_of(e, anchor, [&](Displacement by) {
      ++candidates;
      // One element in four must agree: after the first eight the rest is skipped if none does.
      std::size_t agree = 0;
      for (std::size_t i = 0; i < count; ++i) {
        ++hypotheses.places;
        agree += explains(by, *tried[i]);
        if (i == 7 && agree < 2) return;
      }
      if (agree < std::max<std::size_t>(2, count / 4)) return;
      found[by] = agree;
    });
  }
  std::vector<std::pair<std::size_t, Displacement>> best;
  for (const auto& [by, agree] : found) best.emplace_back(agree, by);
  std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return a.second.length() != b.second.length() ? a.second.length() < b.second.length() : a.second < b.second;
  });
  if (best.size() > kMaxCandidates) best.resize(kMaxCandidates);
  // The candidate that explains most of the sample; among equals the nearest; none if two are equally near.
  std::int64_t most = 0;
  std::optional<Displacement> chosen;
  bool is_unique = false;
  for (const auto& [agree, by] : best) {
    hypotheses.places += static_cast<std::int64_t>(sample.size());
    const auto explained = std::count_if(sample.begin(), sample.end(), [&, by = by](const Word& w) { return explains(by, w); });
    if (explained > most || (explained == most && chosen && by.length() < chosen->length())) {
      most = explained, chosen = by, is_unique = true;
    } else if (explained == most && chosen && by.length() == chosen->length()) {
      is_unique = false;
    }
  }
  if (!chosen || !is_unique) return;
  Claim claim;
  claim.least_share = 0.25;
  claim.log_choices = std::log(candidates);
  const bool of_offsets = e.problem.op.starts_with("splits_to_offsets");
  const auto source = [&e, one_matrix, by = *chosen](const Word& w) { return source_of(e, w, by, one_matrix); };
  propose_relocation(hypotheses, e, claim, source, [&e, of_offsets, by = *chosen](const Tally& tally) {
    const std::string what = e.map.is_scale ? "scales of " : "values of ", share = share_text(tally);
    const bool inclusive = of_offsets && by.rows == 0 && by.columns == 1;
    const std::string sum = inclusive ? ": an inclusive sum where an exclusive one is expected" : "";
    return what + displacement_text(e.map, by) + ": " + share + sum;
  });
}

void propose_groups(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (e.map.segments.size() < 2 || sample.empty()) return;
  std::map<std::size_t, std::vector<const Word*>> wrong;
  for (const Word& w : sample) {
    if (wrong.size() < kMaxGroups || wrong.count(w.segment) != 0) wrong[w.segment].push_back(&w);
  }
  // For each wrong group, the group that explains most of it.
  std::map<std::size_t, std::size_t> from;
  std::map<std::int64_t, std::int64_t> distances;  // and elements explained
  std::int64_t explained = 0, words = 0;
  for (auto& [segment, of_group] : wrong) {
    if (of_group.size() > 16) {
      for (std::size_t i = 0; i < 16; ++i) of_group[i] = of_group[i * of_group.size() / 16];
      of_group.resize(16);
    }
    words += static_cast<std::int64_t>(of_group.size());
    std::int64_t most = 0;
    for (std::size_t other = 0; other < e.map.segments.size(); ++other) {
      if (other == segment) continue;
      std::int64_t agree = 0, seen = 0;
      for (const Word* w : of_group) {
        ++hypotheses.places;
        const std::int64_t element = e.element_at(other, w->at);
        agree += element >= 0 && e.want[element] == w->got;
        if (++seen == 4 && agree == 0) break;
      }
      if (agree == 0) continue;
      distances[static_cast<std::int64_t>(other) - static_cast<std::int64_t>(segment)] += agree;
      if (agree > most) most = agree, from[segment] = other;
    }
    explained += most;
  }
  Claim claim;
  claim.least_share = 0.5;
  const double log_groups = std::log(static_cast<double>(e.map.segments.size()));
  // All alike: one distance between groups.
  const auto one =
      std::max_element(distances.begin(), distances.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (one == distances.end()) return;
  if (one->second >= words - words / 8 && from.size() > 1) {
    const std::int64_t by = one->first;
    claim.log_choices = log_groups;
    propose_relocation(
        hypotheses, e, claim,
        [&e, by](const Word& w) -> std::int64_t {
          const std::int64_t other = static_cast<std::int64_t>(w.segment) + by;
          if (other < 0 || other >= static_cast<std::int64_t>(e.map.segments.size())) return -1;
          return e.element_at(static_cast<std::size_t>(other), w.at);
        },
        [by](const Tally& tally) {
          const std::string which = "each has those of " + steps_text(by, "group");
          return "values of another group: " + which + ": " + share_text(tally);
        });
    return;
  }
  if (explained * 2 < words) return;
  claim.log_choices = log_groups * static_cast<double>(from.size());
  std::string list;
  std::size_t listed = 0;
  for (const auto& [segment, other] : from) {
    if (listed++ == 4) break;
    list += (list.empty() ? "group " : ", group ") + show(e.map.segments[segment].group);
    list += " has those of group " + show(e.map.segments[other].group);
  }
  if (from.size() > 4) list += ", ...";
  const bool is_whole = wrong.size() < kMaxGroups;
  propose_relocation(
      hypotheses, e, claim,
      [&e, from](const Word& w) -> std::int64_t {
        const auto found = from.find(w.segment);
        return found == from.end() ? -1 : e.element_at(found->second, w.at);
      },
      [list, is_whole](const Tally& tally) {
        const std::string far = is_whole ? "" : ", of the groups that were examined";
        return "values of another group: " + list + ": " + share_text(tally) + far;
      });
}

}  // namespace assay::conformance
