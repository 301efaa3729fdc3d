// NaN, infinity, the largest number, zero and subnormals where something else is expected.

#include "conformance/diagnose/hints/codes.h"
#include "conformance/diagnose/hints/hypothesis.h"

namespace assay::conformance {
namespace {

const Claim kAnyShare = {.least_share = 0};

void propose_nans(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  const std::uint64_t largest = is_floating(type) ? largest_finite(type) : 0;
  propose(
      hypotheses, kAnyShare,
      [=](const Word& w) {
        if (!is_nan(type, w.got) || is_nan(type, w.want)) return -1;
        return is_infinite(type, w.want) ? 1 : is_floating(type) && magnitude(type, w.want) == largest ? 2 : 0;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(1)) return "NaN where infinity is expected: " + share;
        if (tally.only(2)) return "NaN where the largest number is expected: " + share + ": not saturated";
        return "NaN where a number is expected: " + share;
      });
  propose(
      hypotheses, kAnyShare,
      [=](const Word& w) {
        if (is_nan(type, w.got) || !is_nan(type, w.want)) return -1;
        if (!is_floating(type)) return 0;
        return magnitude(type, w.got) == largest ? 1 : is_zero(type, w.got) ? 2 : is_infinite(type, w.got) ? 3 : 0;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(1)) return "the largest number where NaN is expected: " + share + ": saturated";
        if (tally.only(2)) return "0 where NaN is expected: " + share;
        if (tally.only(3)) return "infinity where NaN is expected: " + share;
        return "a number where NaN is expected: " + share;
      });
}

// Another NaN than the expected one. Each element shows it, so one element is enough.
void propose_other_nans(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  const Claim seen{.chance = 1e-7};
  propose(
      hypotheses, seen,
      [=](const Word& w) {
        if (!is_nan(type, w.got) || !is_nan(type, w.want)) return -1;
        return (w.got ^ w.want) != sign_bit(type) ? 2 : (w.got & sign_bit(type)) != 0 ? 0 : 1;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(0)) return "NaN of negative sign where one of positive sign is expected: " + share;
        if (tally.only(1)) return "NaN of positive sign where one of negative sign is expected: " + share;
        return "another NaN than the expected one: " + share;
      });
}

void propose_overflows(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  const std::uint64_t largest = largest_finite(type);
  propose(
      hypotheses, kAnyShare,
      [=](const Word& w) {
        if (!is_infinite(type, w.got) || !is_finite(type, w.want)) return -1;
        return magnitude(type, w.want) == largest ? 1 : 0;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(1)) return "infinity where the largest number is expected: " + share + ": not saturated";
        return "infinity where a number is expected: " + share;
      });
  propose(
      hypotheses, kAnyShare,
      [=](const Word& w) {
        if (magnitude(type, w.got) != largest || is_nan(type, w.want) || magnitude(type, w.want) == largest) return -1;
        return is_infinite(type, w.want) ? 1 : 0;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(1)) return "the largest number where infinity is expected: " + share + ": saturated";
        return "the largest number where a smaller one is expected: " + share + ": saturated";
      });
}

void propose_zeros(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  if (!is_floating(type)) {
    propose(
        hypotheses, kAnyShare, [](const Word& w) { return w.got == 0 ? 0 : -1; },
        [](const Tally& tally) { return "0 where another value is expected: " + share_text(tally); });
    return;
  }
  propose(
      hypotheses, kAnyShare,
      [=](const Word& w) {
        if (!is_zero(type, w.got) || is_zero(type, w.want) || is_nan(type, w.want)) return -1;
        return is_subnormal(type, w.want) ? 1 : 0;
      },
      [](const Tally& tally) {
        const std::string share = share_text(tally);
        if (tally.only(1)) return "0 where a subnormal is expected: " + share + ": flushed to zero";
        return "0 where another value is expected: " + share;
      });
}

void propose_signs(const WrongOutput& e, Hypotheses& hypotheses) {
  const Format type = e.want.type;
  propose(
      hypotheses, kAnyShare, [=](const Word& w) { return is_zero(type, w.got) && is_zero(type, w.want) ? 0 : -1; },
      [](const Tally& tally) {
        return "only the sign of zero differs: " + share_text(tally) + " (zero_sign=free would allow it)";
      });
  propose(
      hypotheses, {},
      [=](const Word& w) {
        if ((w.got ^ w.want) != sign_bit(type) || is_zero(type, w.got)) return -1;
        if (is_nan(type, w.got) || is_nan(type, w.want)) return -1;
        return (w.got & sign_bit(type)) == 0 ? 0 : 1;
      },
      [](const Tally& tally) {
        const std::string text = "only the sign differs: " + share_text(tally);
        if (tally.explained() < 8) return text;
        if (tally.only(0)) return text + ", where a negative number is expected: the sign is lost";
        return tally.only(1) ? text + ", where a positive number is expected" : text;
      });
}

}  // namespace

void propose_special_values(const WrongOutput& e, std::span<const Word>, Hypotheses& hypotheses) {
  if (is_floating(e.want.type)) propose_signs(e, hypotheses);
  if (is_floating(e.want.type) || e.want.type == Format::e8m0) propose_nans(e, hypotheses);
  if (is_floating(e.want.type)) propose_other_nans(e, hypotheses);
  if (is_floating(e.want.type)) propose_overflows(e, hypotheses);
  propose_zeros(e, hypotheses);
}

}  // namespace assay::conformance
