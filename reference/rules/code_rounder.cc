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

// The code of a magnitude is the number of steps that it has reached.
ASSAY_CLONES void count_steps(const std::uint32_t* first, int steps, std::uint8_t sign, std::uint8_t nan_code,
                              const float* __restrict values, int count, std::uint8_t* __restrict codes) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = float_bits(values[i]), magnitude = bits & kMagnitude;
    std::uint32_t code = 0;
    for (int step = 0; step < steps; ++step) code += magnitude >= first[step] ? 1 : 0;
    code |= bits >> 31 != 0 ? sign : 0u;
    codes[i] = static_cast<std::uint8_t>(magnitude > kInfinity ? nan_code : code);
  }
}

// What differs from the format's own conversion: values past the largest, NaN, and negative zeros.
ASSAY_CLONES void mend(std::uint8_t special, std::uint32_t special_from, std::uint8_t nan_code, std::uint8_t sign,
                       CodeRounding::NegativeZero negative_zero, const float* __restrict values, int count,
                       std::uint8_t* __restrict codes) {
  const bool never = negative_zero == CodeRounding::NegativeZero::never;
  const bool underflow = negative_zero == CodeRounding::NegativeZero::underflow;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = float_bits(values[i]), magnitude = bits & kMagnitude;
    std::uint32_t code = codes[i];
    code = magnitude >= special_from ? (special | (bits >> 31 != 0 ? sign : 0u)) : code;
    code = magnitude > kInfinity ? nan_code : code;
    code = (never && code == sign) || (underflow && magnitude == 0) ? 0u : code;
    codes[i] = static_cast<std::uint8_t>(code);
  }
}

}  // namespace

// A magnitude code is a step function of the magnitude: the places of the steps are the midpoints between neighbours.
CodeRounder::CodeRounder(Format format, const CodeRounding& rounding)
    : format_(format), rounding_(rounding), usual_(is_plain(format, rounding)) {
  const bool has_nan = format == Format::e4m3 || format == Format::e5m2;
  const int width = bits_of(format);
  sign_ = static_cast<std::uint8_t>(1u << (width - 1));
  std::vector<std::uint8_t> codes(sign_);
  for (std::size_t c = 0; c < codes.size(); ++c) codes[c] = static_cast<std::uint8_t>(c);
  std::vector<float> values(codes.size());
  decode(format, codes, values);
  const auto top = static_cast<std::size_t>(std::find(values.begin(), values.end(), max_finite(format)) - values.begin());
  nan_code_ = has_nan ? 0x7F : rounding.nan == CodeRounding::NanCode::zero ? 0 : static_cast<std::uint8_t>(top);
  values.resize(top + 1);
  special_code_ = static_cast<std::uint8_t>(top + 1);
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
  if (values.size() > top + 1) special_from_ = first_.back();
}

void CodeRounder::round(const float* values, int count, std::uint8_t* codes) const {
  const auto size = static_cast<std::size_t>(count);
  if (rounding_.round == CodeRounding::Round::even) {
    encode(format_, std::span(values, size), std::span(codes, size));
  } else if (first_.size() <= kFewSteps) {
    count_steps(first_.data(), static_cast<int>(first_.size()), sign_, nan_code_, values, count, codes);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t magnitude = float_bits(values[i]) & kMagnitude;
      const auto code = static_cast<std::uint8_t>(std::upper_bound(first_.begin(), first_.end(), magnitude) - first_.begin());
      codes[i] = magnitude > kInfinity ? nan_code_ : static_cast<std::uint8_t>(code | (std::signbit(values[i]) ? sign_ : 0));
    }
  }
  if (usual_) return;
  mend(static_cast<std::uint8_t>(special_code_), special_from_, nan_code_, sign_, rounding_.negative_zero, values, count, codes);
}

}  // namespace assay::fast
