#pragma once
// The search for the cause of a failure: every change of the call that can be expressed here, each computed and compared with what
// the call gave, word by word. Exhaustive and slow, where the hints of a failure are quick.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/judge/kept_call.h"

namespace assay::conformance {

// A cause and how far it goes.
struct Cause {
  std::string text;            // "with both scales multiplied first"
  std::string region;          // "from row 64 on": the cause there, and right words elsewhere; empty: everywhere
  std::int64_t explained = 0;  // wrong words that it gives
  std::int64_t spoilt = 0;     // words besides that it would change otherwise than the call did
  bool full = false;           // it gives every word of every output, the wrong and the right ones
  bool by_chance = false;      // full, but of so few words that chance could do it
  bool two = false;            // two causes at once
  int cost = 0;
};

struct Explanation {
  std::int64_t wrong = 0, words = 0;  // words of all outputs: that are wrong, and all that are judged
  std::int64_t tried = 0;             // causes
  std::int64_t left = 0;              // mutants that were not tried for want of time
  bool complete = true;               // false: the time was over before all was tried
  std::string note;                   // of the plan that a product is compared under, where none was stated
  std::vector<Cause> causes;          // the best first; those with `full` come first. Empty: none explains a wrong word
  // Causes with `full` that give the same words: this call alone cannot tell them apart.
  std::size_t alike() const;
};

struct ExplainOptions {
  std::size_t most = 5;      // causes that are kept, besides those with `full`
  double seconds = 0;        // after which the search ends; 0: all is tried
  std::string mutants = {};  // library of mutants, which are tried where no cause is full; "": none
  std::function<void(const std::string& text)> tried = {};  // called after each cause; may throw to end the search
};

// Errors: those of answer(); InvalidArgument where the outputs are all right.
Explanation explain(const KeptCall& kept, const ExplainOptions& options = {});

// "with both scales multiplied first, from row 64 on: every word: 532 wrong, 1200 right".
std::string text_of(const Cause& cause, const Explanation& explanation);

}  // namespace assay::conformance
