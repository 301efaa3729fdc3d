#include "reference/rules/code_rounder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "reference/formats/encode.h"
#include "reference/formats/fast_codes.h"

namespace assay::fast {
namespace {

bool is_usual(Format format, const CodeRounding& rounding) {
  CodeRounding plain = rounding;
  if (format == Format::e4m3 || format == Format::e5m2) plain.nan = CodeRounding::NanCode::largest;  // these have a NaN
  return plain == CodeRounding{};
}

}  // namespace

// A magnitude code is a step function of the magnitude: the places of the steps are the midpoints between neighbours.
CodeRounder::CodeRounder(Format format, const CodeRounding& rounding)
    : format_(format), rounding_(rounding), usual_(is_usual(format, rounding)) {
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
}

std::uint8_t CodeRounder::code_of(float value) const {
  const std::uint32_t magnitude = float_bits(value) & kMagnitude;
  if (magnitude > kInfinity) return nan_code_;
  const auto code = static_cast<std::uint8_t>(std::upper_bound(first_.begin(), first_.end(), magnitude) - first_.begin());
  bool negative = float_bits(value) >> 31 != 0;
  if (rounding_.negative_zero == CodeRounding::NegativeZero::never) negative = negative && code != 0;
  if (rounding_.negative_zero == CodeRounding::NegativeZero::underflow) negative = negative && magnitude != 0;
  return negative ? code | sign_ : code;
}

void CodeRounder::round(const float* values, int count, std::uint8_t* codes) const {
  const auto size = static_cast<std::size_t>(count);
  if (usual_) return encode(format_, std::span(values, size), std::span(codes, size));
  for (std::size_t i = 0; i < size; ++i) codes[i] = code_of(values[i]);
}

}  // namespace assay::fast
