// Elements that were not written.

#include <algorithm>

#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kRun = 8;  // bytes in a row that no value has by chance

// Whether `run` bytes in a row, all `value`, stand anywhere in the tensor. Each such run meets one byte in `run`.
bool holds_run(const Elements& elements, std::int64_t count, std::byte value, std::int64_t run) {
  const std::int64_t bytes = count * elements.bits / 8;
  for (std::int64_t at = run - 1; at < bytes; at += run) {
    if (elements.bytes[at] != value) continue;
    std::int64_t begin = at, end = at + 1;
    while (begin > 0 && elements.bytes[begin - 1] == value) --begin;
    while (end < bytes && end - begin < run && elements.bytes[end] == value) ++end;
    if (end - begin >= run) return true;
  }
  return false;
}

// If the call was made over two contents: elements that hold both. With one run, or where only this run left an element alone:
// elements in a run of bytes that no expected value has. Bytes of 0xFF alone are not evidence: a code, -1, or a NaN that
// came from memory that was read.
class Unwritten {
 public:
  explicit Unwritten(const WrongOutput& e) : e_(e) {
    if (!e.has_before || e.map.elements == 0) return;
    const std::byte value = e.before.bytes[0];
    const std::int64_t bytes = std::max<std::int64_t>(kRun, 2 * e.want.bits / 8);
    run_ = bytes * 8 / e.want.bits;
    trusts_runs_ = value != std::byte{0xFF} && !holds_run(e.want, e.map.elements, value, bytes);
  }
  bool operator()(const Word& word) const {
    if (!e_.has_before || e_.before[word.element] != word.got) return false;
    if (e_.other.is_known) {
      const std::uint64_t before = e_.other.before[word.element], got = e_.other.got[word.element];
      if (got == before && before != word.got) return true;
      if (got == word.got) return false;
    }
    return trusts_runs_ && in_run(word);
  }

 private:
  bool left_alone(const Segment& s, std::int64_t element) const {
    if (element < s.first || element >= s.first + s.elements()) return false;
    const bool used = e_.is_used(s, coordinates_of(s, element - s.first));
    if (!used && s.swizzle == Swizzle::none) return false;
    return e_.got[element] == e_.before[element] && e_.got[element] != (used ? e_.want[element] : 0);
  }
  bool in_run(const Word& word) const {
    const Segment& s = e_.map.segments[word.segment];
    std::int64_t count = 1;
    for (const int step : {-1, 1}) {
      for (std::int64_t at = word.element + step; count < run_ && left_alone(s, at); at += step) ++count;
    }
    return count >= run_;
  }

  const WrongOutput& e_;
  std::int64_t run_ = kRun;  // elements
  bool trusts_runs_ = false;
};

}  // namespace

void propose_poison(const WrongOutput& e, std::span<const Word>, Hypotheses& hypotheses) {
  if (!e.has_before) return;
  Claim claim;
  claim.least_share = 0;
  claim.leads = true;
  claim.chance = e.want.bits == 4 ? 1.0 / 256 : 1e-7;  // two nibbles may match by chance; one element of both runs is enough
  const auto text = [](const Tally& tally) {
    const std::string hold = tally.elements == 1 ? " still holds" : " still hold";
    return "not written: " + share_text(tally) + hold + " what was there before the call";
  };
  propose(
      hypotheses, claim, [unwritten = Unwritten(e)](const Word& word) { return unwritten(word) ? 0 : -1; }, text);
}

}  // namespace assay::conformance
