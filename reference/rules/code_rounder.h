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

 private:
  std::uint8_t code_of(float value) const;

  Format format_;
  CodeRounding rounding_;
  bool usual_;                        // nearest even, saturating, as the format's own conversion
  std::vector<std::uint32_t> first_;  // first_[c]: bits of the smallest magnitude whose code is at least c + 1
  std::uint8_t nan_code_, sign_;
};

}  // namespace assay::fast
