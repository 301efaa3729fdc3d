#pragma once
// Guesses at the cause of a difference, from what the wrong values look like. A hint is given only where it explains every
// wrong element (or says how many it explains).

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/compare/elements.h"
#include "conformance/compare/output_map.h"

namespace assay::conformance {

// One element that differs.
struct Mismatch {
  std::size_t segment;
  std::int64_t offset;  // within the segment
  std::uint64_t got, want;
};

// Another run of the call, over other contents.
struct OtherElements {
  bool is_known = false;
  Elements got, before;
};

struct Evidence {
  const OutputMap& map;
  Elements got, want;
  bool has_before = false;
  Elements before;
  OtherElements other;
  std::vector<Mismatch> mismatches;  // those among elements in use
};

// At most three, most telling first.
std::vector<std::string> hints_for(const Evidence& evidence);

}  // namespace assay::conformance
