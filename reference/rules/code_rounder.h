#pragma once
// Layer (b) of rounding to codes by a rule (spec scale-rules-3.1).

#include <cstdint>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/rules/scale_rule.h"
#include "reference/support/simd.h"

namespace assay::fast {

// Where a rule's codes differ from those that its rounding alone gives: values past the largest, NaN, and negative zeros.
struct CodeFixes {
  std::uint32_t special_from = 0xFFFF'FFFF;  // magnitudes from these bits on have the code `special`
  std::uint32_t special = 0, nan = 0, sign = 0;
  std::uint32_t positive_zero_from = 0;  // a zero code of a magnitude below these bits has no sign
};

// The code of `value`, for which rounding alone gave `code`.
ASSAY_INLINE std::uint32_t fixed_code(std::uint32_t code, float value, const CodeFixes& fixes) {
  const std::uint32_t bits = float_bits(value), magnitude = bits & kMagnitude;
  code = magnitude >= fixes.special_from ? fixes.special | (bits >> 31) * fixes.sign : code;
  code = magnitude > kInfinity ? fixes.nan : code;
  return code == fixes.sign && magnitude < fixes.positive_zero_from ? 0u : code;
}

class CodeRounder {
 public:
  CodeRounder(Format format, const CodeRounding& rounding);

  // codes[i] of values[i], one code a byte. May be called by several threads at once.
  void round(const float* values, int count, std::uint8_t* codes) const;

  // Whether codes are those of the format's own conversion (reference/formats/encode.h).
  bool is_usual() const { return usual_; }
  bool rounds_to_even() const { return rounding_.round == CodeRounding::Round::even; }
  Format format() const { return format_; }
  const CodeFixes& fixes() const { return fixes_; }

 private:
  Format format_;
  CodeRounding rounding_;
  bool usual_;
  std::vector<std::uint32_t> first_;  // first_[c]: bits of the smallest magnitude whose code is at least c + 1
  CodeFixes fixes_;
};

}  // namespace assay::fast
