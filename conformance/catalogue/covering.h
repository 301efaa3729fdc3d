#pragma once
// Pairwise covering: few lines that combine any two values of two different axes, where allowed.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// Words that exclude one another: {"pow2=0", "pow2=1"}, {"R=33 K=272", "splits=0,128 K=512"}. "" stands for none.
using Axis = std::vector<std::string>;

// Lines "PREFIX word word ...", one word of each axis, seeds from `first_seed` on. A combination that parse_case_line
// refuses, or that costs more than `most_macs` or `most_elements`, is left out. Deterministic. Every pair of values is met
// if one of a few dozen tries is accepted.
struct CoveringLimits {
  std::int64_t most_macs = 4'000'000;
  std::int64_t most_elements = 400'000;
};
std::vector<CaseLine> covering_lines(const std::string& prefix, const std::vector<Axis>& axes, int first_seed,
                                     const CoveringLimits& limits = {});

bool is_case_line(const std::string& text);

// Lines with one seed after another.
class SeededLines {
 public:
  explicit SeededLines(int first_seed) : seed_(first_seed) {}
  void add(const std::string& text);
  // Lines "PREFIX word ..." that cover every word of every axis that fits the prefix: each takes as many new words as fit
  // together. If no new word fits, it takes "" if the axis has it, else another word. The first axis makes a line.
  void add_each(const std::string& prefix, const std::vector<Axis>& axes);
  std::vector<CaseLine> take() { return std::move(made_); }

 private:
  int seed_;
  std::vector<CaseLine> made_;
};

}  // namespace assay::conformance
