#pragma once
// A failed call with everything that it read and gave: enough to explain the failure where the backend is not at hand.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "golden/io/fixture.h"

namespace assay::conformance {

inline constexpr std::size_t kKeptEarlier = 4;  // calls before it on the same memory

struct KeptCall {
  Case call;                  // attributes with the plan and the sign of zero that were expected; `out`: what the call gave
  std::vector<Case> earlier;  // inputs of the calls before, the latest last
  std::uint8_t poison = 0;    // what outputs were filled with
  std::string when;           // "replay 2 of 4"; empty: the call itself
  std::string plan, unit;     // as the backend stated them; empty: nothing
};

}  // namespace assay::conformance
