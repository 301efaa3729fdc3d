// Sums and offsets: carries, strides.

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::int64_t number_of(const Elements& elements, std::uint64_t bits) {
  if (elements.bits == 32) return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  return static_cast<std::int64_t>(bits);
}

// got - want, modulo 2^bits.
std::int64_t excess(const Elements& elements, const Word& w) { return number_of(elements, w.got - w.want); }

void propose_narrow_sums(const WrongOutput& e, Hypotheses& hypotheses) {
  if (e.want.bits != 64) return;
  propose(
      hypotheses, {},
      [](const Word& w) {
        if (static_cast<std::uint32_t>(w.got) != static_cast<std::uint32_t>(w.want)) return -1;
        const std::uint64_t high = w.got >> 32;
        return high == 0 ? 0 : high == 0xFFFF'FFFF ? 1 : -1;
      },
      [](const Tally& tally) {
        const std::string how = tally.only(0) ? ", the rest 0" : tally.only(1) ? ", with its sign spread" : "";
        return "only the low 32 bits of the expected value" + how + ": " + share_text(tally) + ": computed in 32 bits";
      });
}

// Sums that restart in each chunk.
void propose_chunks(const WrongOutput& e, Hypotheses& hypotheses) {
  for (const std::int64_t chunk : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    if (chunk >= e.map.elements) break;
    Claim claim;
    claim.log_choices = std::log(9.0);
    propose(
        hypotheses, claim,
        [&e, chunk](const Word& w) {
          if (w.offset < chunk) return -1;
          const std::int64_t start = w.element - w.offset % chunk;
          return w.got == w.want - e.want[start] && e.want[start] != 0 ? 0 : -1;
        },
        [chunk](const Tally& tally) {
          return "sums begin at 0 again every " + show(chunk) + " elements: " + share_text(tally) + ": the carry is lost";
        });
  }
}

// One difference from some element on.
void propose_one_difference(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  std::map<std::int64_t, int> votes;
  for (const Word& w : sample) ++votes[excess(e.want, w)];
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end() || most->second < 2 || most->first == 0) return;
  const std::int64_t by = most->first;
  const Segment& s = e.map.segments[sample.front().segment];
  const Word& first = sample.front();  // the first wrong element, where the sample holds all of them
  const bool to_the_end = e.map.segments.size() == 1 && s.first + s.elements() - first.element == e.used.count();
  Claim claim;
  claim.log_choices = std::log(static_cast<double>(sample.size()));
  propose(
      hypotheses, claim, [elements = e.want, by](const Word& w) { return excess(elements, w) == by ? 0 : -1; },
      [by, to_the_end, at = first.offset](const Tally& tally) {
        const std::string far = by < 0 ? show(-by) + " too small" : show(by) + " too large";
        if (!to_the_end || tally.explained() != tally.elements) return far + ": " + share_text(tally);
        const std::string index = show(at), share = share_text(tally);
        return far + " from index " + index + " to the end: " + share + ": a carry that is wrong at index " + index;
      });
}

// A whole factor: a stride that is missing, or applied twice.
void propose_strides(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  std::map<std::pair<std::int64_t, bool>, int> votes;
  for (const Word& w : sample) {
    const std::int64_t got = number_of(e.want, w.got), want = number_of(e.want, w.want);
    if (got == 0 || want == 0 || want == -1 || got == -1) continue;
    if (got % want == 0) ++votes[{got / want, true}];
    if (want % got == 0) ++votes[{want / got, false}];
  }
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end() || most->second < 2) return;
  const auto [factor, more] = most->first;
  Claim claim;
  claim.log_choices = std::log(2.0 * static_cast<double>(sample.size()));
  propose(
      hypotheses, claim,
      [elements = e.want, factor = factor, more = more](const Word& w) {
        const auto by = static_cast<std::uint64_t>(factor);
        const std::uint64_t mask = elements.bits == 64 ? ~std::uint64_t{0} : 0xFFFF'FFFF;
        return (more ? w.got == (w.want * by & mask) : w.want == (w.got * by & mask)) ? 0 : -1;
      },
      [factor = factor, more = more](const Tally& tally) {
        const std::string what = more ? "the expected value times " : "the expected value divided by ";
        return what + show(factor) + ": " + share_text(tally);
      });
}

}  // namespace

void propose_integers(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (e.want.type != Format::i32 && e.want.type != Format::i64) return;
  propose_narrow_sums(e, hypotheses);
  propose_chunks(e, hypotheses);
  propose_one_difference(e, sample, hypotheses);
  propose_strides(e, sample, hypotheses);
}

}  // namespace assay::conformance
