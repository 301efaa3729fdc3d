#pragma once
// Guesses at the cause of a difference, from what the wrong words look like: hints/hypothesis.h has what is tried.
//
// A hint says what share of the wrong words it explains, and is given only where words that are wrong at random, or that are
// expected elsewhere, would hardly ever look like it. What to try is found on a sample spread over all wrong words, so it takes
// no longer for millions of them; then one pass over all of them counts what is explained.

#include <string>
#include <vector>

#include "conformance/diagnose/hints/evidence.h"

namespace assay::conformance {

// What was done to find hints, in numbers that do not depend on the machine.
struct HintEffort {
  std::int64_t sampled = 0;    // wrong words that hypotheses were tried on
  std::int64_t hypotheses = 0;
  std::int64_t places = 0;     // of the output, in the search for them
  std::int64_t passes = 0;     // over all wrong words
};

// At most three, most telling first.
std::vector<std::string> hints_for(const Evidence& evidence, HintEffort* effort = nullptr);

}  // namespace assay::conformance
