#include "conformance/diagnose/hints/hints.h"

#include <algorithm>

#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kSample = 4096;
constexpr std::size_t kMaxHints = 3;

// In this order where two explain the same number: an explanation by the element itself before one by another place.
constexpr decltype(&propose_poison) kSubjects[] = {propose_poison,  propose_special_values, propose_inputs, propose_integers,
                                                   propose_steps,   propose_factors,        propose_groups, propose_displacements,
                                                   propose_layouts, propose_permutations};

// Hypotheses that explain the sample: those that lead first, then the one that explains most of the remaining elements.
class Choice {
 public:
  Choice(const WrongOutput& output, std::span<const Word> sample, const Hypotheses& hypotheses)
      : sample_(sample),
        hypotheses_(hypotheses),
        chance_(output, sample),
        open_(sample.size(), 1),
        known_(hypotheses.list.size(), -1) {
    for (const auto& each : hypotheses.list) {
      kinds_.emplace_back(sample.size());
      each->explain(sample, kinds_.back());
    }
  }

  std::vector<std::size_t> choose() {
    std::vector<std::size_t> chosen;
    auto open = static_cast<std::int64_t>(sample_.size());
    while (chosen.size() < kMaxHints && open > 0) {
      std::int64_t most = 0;
      std::size_t best = hypotheses_.list.size();
      for (std::size_t h = 0; h < hypotheses_.list.size(); ++h) {
        const std::int64_t explained = opened_by(h);
        if (explained <= most || !holds(h, explained, open)) continue;
        most = explained, best = h;
        if (hypotheses_.list[h]->claim().leads) break;
      }
      if (best == hypotheses_.list.size()) break;
      chosen.push_back(best);
      open -= most;
      for (std::size_t i = 0; i < open_.size(); ++i) open_[i] = open_[i] != 0 && kinds_[best][i] < 0;
    }
    return chosen;
  }

 private:
  std::int64_t opened_by(std::size_t h) const {
    std::int64_t explained = 0;
    for (std::size_t i = 0; i < open_.size(); ++i) explained += open_[i] != 0 && kinds_[h][i] >= 0;
    return explained;
  }
  bool holds(std::size_t h, std::int64_t explained, std::int64_t open) {
    const Claim& claim = hypotheses_.list[h]->claim();
    if (static_cast<double>(explained) < claim.least_share * static_cast<double>(open)) return false;
    if (!hypotheses_.list[h]->is_varied(sample_, kinds_[h])) return false;
    if (known_[h] < 0) known_[h] = hypotheses_.list[h]->chance(chance_);
    return is_significant(explained, open, known_[h], claim.log_choices);
  }

  std::span<const Word> sample_;
  const Hypotheses& hypotheses_;
  Chance chance_;
  std::vector<std::uint8_t> open_;
  std::vector<double> known_;  // chances, once computed
  std::vector<std::vector<std::int8_t>> kinds_;
};

// How many of all wrong elements each of these explains.
std::vector<Tally> count_all(const WrongOutput& e, const WrongWords& words, const std::vector<const Hypothesis*>& chosen) {
  std::vector<std::vector<Tally>> pieces(words.pieces(), std::vector<Tally>(chosen.size()));
  words.visit(e.map, e.got, e.want, [&](std::size_t piece, std::span<const Word> some) {
    std::array<std::int8_t, 512> kinds;
    for (std::size_t h = 0; h < chosen.size(); ++h) {
      chosen[h]->explain(some, {kinds.data(), some.size()});
      pieces[piece][h].add({kinds.data(), some.size()});
    }
  });
  std::vector<Tally> all(chosen.size());
  for (const std::vector<Tally>& piece : pieces) {
    for (std::size_t h = 0; h < chosen.size(); ++h) {
      all[h].elements += piece[h].elements;
      for (std::size_t k = 0; k < all[h].kinds.size(); ++k) all[h].kinds[k] += piece[h].kinds[k];
    }
  }
  return all;
}

void explain_used(const WrongOutput& e, std::vector<std::string>& hints, HintEffort& effort) {
  const std::vector<Word> sample = e.used.sample(e.map, e.got, e.want, kSample);
  Hypotheses hypotheses;
  for (const auto propose_subject : kSubjects) propose_subject(e, sample, hypotheses);
  effort.sampled += static_cast<std::int64_t>(sample.size());
  effort.hypotheses += static_cast<std::int64_t>(hypotheses.list.size());
  effort.places += hypotheses.places;
  std::vector<const Hypothesis*> chosen;
  for (const std::size_t h : Choice(e, sample, hypotheses).choose()) chosen.push_back(hypotheses.list[h].get());
  if (chosen.empty()) return;
  ++effort.passes;
  const std::vector<Tally> tallies = count_all(e, e.used, chosen);
  for (std::size_t h = 0; h < chosen.size(); ++h) hints.push_back(chosen[h]->text(tallies[h]));
}

// Padding that must be 0 and is not.
void explain_padding(const WrongOutput& e, std::vector<std::string>& hints, HintEffort& effort) {
  Hypotheses hypotheses;
  propose_poison(e, {}, hypotheses);
  std::vector<const Hypothesis*> chosen;
  for (const auto& each : hypotheses.list) chosen.push_back(each.get());
  ++effort.passes;
  const std::vector<Tally> tallies = count_all(e, e.padding, chosen);
  if (!tallies.empty() && tallies[0].explained() > 0) {
    hints.push_back("padding, which must be 0, is " + chosen[0]->text(tallies[0]));
  } else {
    const std::string elements = e.padding.count() == 1 ? " element is not" : " elements are not";
    hints.push_back("padding must be 0: " + show(e.padding.count()) + elements);
  }
}

}  // namespace

std::vector<std::string> hints_for(const WrongOutput& e, HintEffort* effort) {
  std::vector<std::string> hints;
  HintEffort spent;
  if (e.scales_are_wrong && e.used.count() > 0) hints.push_back("their scales are wrong too: look at them first");
  if (e.used.count() > 0) explain_used(e, hints, spent);
  if (e.padding.count() > 0) explain_padding(e, hints, spent);
  if (hints.size() > kMaxHints) hints.resize(kMaxHints);
  if (effort != nullptr) *effort = spent;
  return hints;
}

}  // namespace assay::conformance
