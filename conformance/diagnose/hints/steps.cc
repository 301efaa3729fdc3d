// Values that are slightly wrong: one step, a factor, a sum with fewer bits.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "conformance/diagnose/hints/codes.h"
#include "conformance/diagnose/hints/hypothesis.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kOneWay = 16;  // elements that do not all err to one side by chance

// A factor between two numbers of one sign, or 0 if it is not a power of two.
double power_between(Format type, std::uint64_t got, std::uint64_t want) {
  if (!is_finite(type, got) || !is_finite(type, want)) return 0;
  const double factor = value_of(type, got) / value_of(type, want);
  int exponent;
  return std::frexp(factor, &exponent) == 0.5 && value_of(type, want) != 0 ? factor : 0;
}

void propose_one_step(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  Claim claim;
  claim.least_share = 0.9;
  propose(
      hypotheses, claim,
      [=](const Word& w) {
        if (!is_finite(type, w.got) || !is_finite(type, w.want) || ulp_distance(type, w.got, w.want) != 1) return -1;
        return magnitude(type, w.got) > magnitude(type, w.want) ? 0 : 1;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.elements == 1) return std::string("a rounding: the only wrong element is off by one unit in the last place");
        if (tally.only(1) && tally.explained() >= kOneWay) {
          return "a truncation: off by one unit in the last place, always toward zero: " + share;
        }
        const std::string way = tally.only(0) ? ", always away from zero: " : tally.only(1) ? ", always toward zero: " : ": ";
        return "a rounding: off by one unit in the last place" + way + share;
      });
}

void propose_exponents(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  Claim claim;
  claim.least_share = 0.9;
  const auto way_of = [](const Tally& tally) {
    return tally.only(0) ? "always twice" : tally.only(1) ? "always half" : "twice or half";
  };
  const bool scale = e.map.is_scale;
  // In either direction, then in one: scales that take two neighbouring values are wrong by a factor of 2 under any fault, but not
  // all to one side.
  for (const int only : {-1, 0, 1}) {
    propose(
        hypotheses, claim,
        [=](const Word& w) {
          const double factor = power_between(type, w.got, w.want);
          const int way = factor == 2 ? 0 : factor == 0.5 ? 1 : -1;
          return only < 0 || way == only ? way : -1;
        },
        [=](const Tally& tally) {
          const std::string share = share_text(tally);
          if (scale) return std::string("scales off by a factor of 2, ") + way_of(tally) + " the expected one: " + share;
          return std::string("exponents off by one, ") + way_of(tally) + " the expected value: " + share;
        });
  }
}

// One factor, a power of two: that of most elements of the sample.
void propose_power(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  std::map<double, int> votes;
  for (const Word& w : sample) {
    const double factor = power_between(type, w.got, w.want);
    if (factor != 0) ++votes[factor];
  }
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end()) return;
  const double factor = most->first;
  if (factor == 2 || factor == 0.5) return;
  Claim claim;
  claim.log_choices = std::log(64.0);
  propose(
      hypotheses, claim, [=](const Word& w) { return power_between(type, w.got, w.want) == factor ? 0 : -1; },
      [=](const Tally& tally) { return "the expected value times " + show(factor) + ": " + share_text(tally) + ": a scale"; });
}

// One factor of f32 values that is not a power of two, within the error of two roundings.
void propose_ratio(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (e.want.type != Format::f32) return;
  std::vector<double> ratios;
  for (const Word& w : sample) {
    if (!is_finite(Format::f32, w.got) || !is_finite(Format::f32, w.want)) continue;
    if (is_subnormal(Format::f32, w.got) || is_subnormal(Format::f32, w.want)) continue;
    const double want = value_of(Format::f32, w.want);
    if (want != 0) ratios.push_back(value_of(Format::f32, w.got) / want);
  }
  if (ratios.size() < 4) return;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  const double ratio = ratios[ratios.size() / 2], slack = std::ldexp(std::fabs(ratio), -21);
  int exponent;
  // A factor near 1 is a rounding error, not a factor.
  if (!(std::fabs(ratio) > 0) || std::fabs(std::frexp(ratio, &exponent)) == 0.5 || std::fabs(ratio - 1) < 0x1p-10) return;
  Claim claim;
  claim.log_choices = std::log(static_cast<double>(ratios.size()));
  propose(
      hypotheses, claim,
      [=](const Word& w) {
        if (!is_finite(Format::f32, w.got) || !is_finite(Format::f32, w.want)) return -1;
        const double want = value_of(Format::f32, w.want);
        return want != 0 && std::fabs(value_of(Format::f32, w.got) / want - ratio) <= slack ? 0 : -1;
      },
      [=](const Tally& tally) {
        return "the expected value times about " + show(static_cast<float>(ratio)) + ": " + share_text(tally) + ": a scale";
      });
}

// f32 values that fit a shorter format, next to the expected value.
void propose_fewer_bits(const WrongOutput& e, Hypotheses& hypotheses) {
  if (e.want.type != Format::f32) return;
  for (const auto& [bits, name] : {std::pair{13, "tf32 (10 mantissa bits)"}, {16, "bf16"}}) {
    propose(
        hypotheses, {},
        [bits = bits](const Word& w) {
          const std::uint64_t unit = std::uint64_t{1} << bits;
          if ((w.got & (unit - 1)) != 0 || !is_finite(Format::f32, w.got) || !is_finite(Format::f32, w.want)) return -1;
          return ulp_distance(Format::f32, w.got, w.want) < unit ? 0 : -1;
        },
        [name = name](const Tally& tally) { return std::string("rounded to ") + name + ": " + share_text(tally); });
  }
}

// The bytes of each element in reverse order, or its halves exchanged.
void propose_byte_order(const WrongOutput& e, Hypotheses& hypotheses) {
  if (e.want.bits < 16) return;
  const int bits = e.want.bits;
  const auto reversed = [bits](std::uint64_t word) {
    std::uint64_t other = 0;
    for (int at = 0; at < bits; at += 8) other |= (word >> at & 0xFF) << (bits - 8 - at);
    return other;
  };
  propose(
      hypotheses, {}, [=](const Word& w) { return w.got == reversed(w.want) ? 0 : -1; },
      [](const Tally& tally) { return "the bytes of each element are in the other order: " + share_text(tally); });
  if (bits == 16) return;
  const std::uint64_t half = bits / 2 == 32 ? 0xFFFF'FFFF : 0xFFFF;
  propose(
      hypotheses, {}, [=](const Word& w) { return w.got == ((w.want & half) << (bits / 2) | w.want >> (bits / 2)) ? 0 : -1; },
      [](const Tally& tally) { return "the halves of each element are exchanged: " + share_text(tally); });
}

}  // namespace

void propose_steps(const WrongOutput& e, std::span<const Word>, Hypotheses& hypotheses) {
  propose_byte_order(e, hypotheses);
  if (e.scales_are_wrong || !is_floating(e.want.type)) return;
  propose_one_step(e, hypotheses);
  propose_fewer_bits(e, hypotheses);
}

void propose_factors(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (e.scales_are_wrong || (!is_floating(e.want.type) && e.want.type != Format::e8m0)) return;
  propose_exponents(e, hypotheses);
  propose_power(e, sample, hypotheses);
  propose_ratio(e, sample, hypotheses);
}

}  // namespace assay::conformance
