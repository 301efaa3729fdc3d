#pragma once
// The input of hints: an output that differs, and what is known about it.

#include <cstdint>
#include <span>
#include <string>

#include "conformance/diagnose/hints/wrong_words.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/output_map.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// Another run of the call, over other contents.
struct OtherElements {
  bool is_known = false;
  Elements got, before;
};

struct WrongOutput {
  const Case& problem;
  const OutputMap& map;
  Elements got, want;
  bool has_before = false;
  Elements before;  // contents of the output before the call
  OtherElements other;
  bool scales_are_wrong = false;  // the scales of these codes
  WrongWords used, padding;       // elements in use that differ; padding that is not 0

  bool is_used(const Segment& segment, Coordinates at) const {
    return at.row >= 0 && at.column >= 0 && at.row < segment.used_rows && at.column < segment.used_columns;
  }
  // The place of an element in use, or -1 where there is none.
  std::int64_t element_at(std::size_t segment, Coordinates at) const {
    const Segment& s = map.segments[segment];
    return is_used(s, at) ? s.first + offset_of(s, at) : -1;
  }
};

}  // namespace assay::conformance
