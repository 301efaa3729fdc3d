#include "reference/rules/code_rounder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "reference/formats/encode.h"
#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

bool is_plain(Format format, const CodeRounding& rounding) {
  CodeRounding plain = rounding;
  if (format == Format::e4m3 || format == Format::e5m2) plain.nan = CodeRounding::NanCode::largest;  // these have a NaN
  return plain == CodeRounding{};
}

constexpr std::size_t kFewSteps = 8;

// The code of a magnitude is the number of steps that it has reached; `first` has kFewSteps of them. NaN: fix().
ASSAY_CLONES void count_steps(const std::uint32_t* __restrict first, std::uint32_t sign, const float* __restrict values,
                              int count, std::uint8_t* __restrict codes) {
  std::array<std::uint32_t, kFewSteps> steps;
  std::copy_n(first, kFewSteps, steps.begin());
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = float_bits(values[i]), magnitude = bits & kMagnitude;
    std::uint32_t code = 0;
    for (std::size_t step = 0; step < kFewSteps; ++step) code += magnitude >= steps[step] ? 1u : 0u;
    codes[i] = static_cast<std::uint8_t>(code | (bits >> 31) * sign);
  }
}

ASSAY_CLONES void fix(const CodeFixes& fixes, const float* __restrict values, int count, std::uint8_t* __restrict codes) {
  const CodeFixes fixed = fixes;
  for (int i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(fixed_code(codes[i], values[i], fixed));
}

}  // namespace

// A magnitude code is a step function of the magnitude: the places of the steps are the midpoints between neighbours.
CodeRounder::CodeRounder(Format format, const CodeRounding& rounding)
    : format_(format), rounding_(rounding), usual_(is_plain(format, rounding)) {
  const bool has_nan = format == Format::e4m3 || format == Format::e5m2;
  fixes_.sign = 1u << (bits_of(format) - 1);
  std::vector<std::uint8_t> codes(fixes_.sign);
  for (std::size_t c = 0; c < codes.size(); ++c) codes[c] = static_cast<std::uint8_t>(c);
  std::vector<float> values(codes.size());
  decode(format, codes, values);
  const auto top = static_cast<std::uint32_t>(std::find(values.begin(), values.end(), max_finite(format)) - values.begin());
  fixes_.nan = has_nan ? 0x7F : rounding.nan == CodeRounding::NanCode::zero ? 0 : top;
  fixes_.special = top + 1;
  if (rounding.negative_zero == CodeRounding::NegativeZero::underflow) fixes_.positive_zero_from = 1;
  if (rounding.negative_zero == CodeRounding::NegativeZero::never) fixes_.positive_zero_from = 0xFFFF'FFFF;
  values.resize(top + 1);
  if (has_nan && rounding.overflow == CodeRounding::Overflow::special) values.push_back(2 * values[top] - values[top - 1]);
  for (std::size_t c = 0; c + 1 < values.size(); ++c) {
    if (rounding.round == CodeRounding::Round::truncate) {
      first_.push_back(float_bits(values[c + 1]));
      continue;
    }
    const bool upper_has_middle =
        rounding.round == CodeRounding::Round::away || (rounding.round == CodeRounding::Round::even && c % 2 == 1);
    const std::uint32_t middle = float_bits(values[c] / 2 + values[c + 1] / 2);
    first_.push_back(upper_has_middle ? middle : middle + 1);
  }
  if (values.size() > top + 1) fixes_.special_from = first_.back();
  while (first_.size() < kFewSteps) first_.push_back(0xFFFF'FFFF);  // a step that no magnitude reaches
}

void CodeRounder::round(const float* values, int count, std::uint8_t* codes) const {
  const auto size = static_cast<std::size_t>(count);
  if (rounding_.round == CodeRounding::Round::even) {
    encode(format_, std::span(values, size), std::span(codes, size));
  } else if (first_.size() <= kFewSteps) {
    count_steps(first_.data(), fixes_.sign, values, count, codes);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t magnitude = float_bits(values[i]) & kMagnitude;
      const auto code = static_cast<std::uint32_t>(std::upper_bound(first_.begin(), first_.end(), magnitude) - first_.begin());
      codes[i] = static_cast<std::uint8_t>(code | (std::signbit(values[i]) ? fixes_.sign : 0));
    }
  }
  if (!usual_) fix(fixes_, values, count, codes);
}

}  // namespace assay::fast
