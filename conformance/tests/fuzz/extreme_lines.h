#pragma once
// Case lines whose keys have their smallest and their largest values, one key and two at a time: a few words may ask for any size.

#include <string>
#include <vector>

namespace assay::fuzz {

struct ExtremeLine {
  std::string text;
  std::string op, key;  // whose value is extreme
};

// `pairs`: also two keys of numbers at a time.
std::vector<ExtremeLine> extreme_lines(bool pairs);

}  // namespace assay::fuzz
