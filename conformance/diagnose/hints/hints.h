#pragma once
// Hints at the cause of a difference, from the pattern of the wrong elements: hints/hypothesis.h declares what is tried.
//
// A hint gives the share of the wrong elements that it explains, and is given only where elements that are wrong at random, or
// expected elsewhere, would hardly ever match it. Hypotheses are found on a sample spread over all wrong elements, so it takes
// no longer for millions of them; then one pass over all of them counts what is explained.

#include <string>
#include <vector>

#include "conformance/diagnose/hints/wrong_output.h"

namespace assay::conformance {

// Work of the search for hints, in numbers that do not depend on the machine.
struct HintEffort {
  std::int64_t sampled = 0;  // wrong elements that hypotheses were tried on
  std::int64_t hypotheses = 0;
  std::int64_t places = 0;  // of the output, in the search for them
  std::int64_t passes = 0;  // over all wrong elements
};

// At most three, the most informative first.
std::vector<std::string> hints_for(const WrongOutput& output, HintEffort* effort = nullptr);

}  // namespace assay::conformance
