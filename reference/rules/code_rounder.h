#pragma once
// Layer (b) of rounding to codes by a rule (spec scale-rules-3.1).

#include <cstdint>
#include <vector>

#include "reference/rules/scale_rule.h"

namespace assay::fast {

class CodeRounder {
 public:
  CodeRounder(Format format, const CodeRounding& rounding);

  // codes[i] of values[i], one code a byte. May be called by several threads at once.
  void round(const float* values, int count, std::uint8_t* codes) const;

  // Whether codes are those of the format's own conversion (reference/formats/encode.h).
  bool is_usual() const { return usual_; }

 private:
  Format format_;
  CodeRounding rounding_;
  bool usual_;
  std::vector<std::uint32_t> first_;          // first_[c]: bits of the smallest magnitude whose code is at least c + 1
  std::uint32_t special_from_ = 0xFFFF'FFFF;  // magnitudes from these bits on get special_code_
  std::uint8_t special_code_ = 0, nan_code_ = 0, sign_ = 0;
};

}  // namespace assay::fast
