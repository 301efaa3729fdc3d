#pragma once
// Formulas of extents, as `assay list --schema` prints them:
//
//   R, G*N, R/2*K                  whole numbers; / drops the remainder
//   blocks(K,128)                  K/128, rounded up
//   up(R,4)                        R, rounded up to a multiple of 4
//   sum(r*K)                       over the groups, r being the rows of one

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace assay::conformance {

struct FormulaValues {
  std::map<std::string_view, std::int64_t> names;
  std::vector<std::int64_t> group_rows;  // that sum() adds up
};

// Errors (InvalidArgument): text that is not a formula, a name without a value, a division by 0, a value that no int64
// holds.
std::int64_t value_of_formula(std::string_view formula, const FormulaValues& values);

// Extents with commas between them: "blocks(K,128),up(R,4)" has two.
std::vector<std::int64_t> extents_of_formula(std::string_view formulas, const FormulaValues& values);

}  // namespace assay::conformance
