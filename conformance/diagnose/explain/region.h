#pragma once
// The part of an output to which a cause is restricted: found from the words that it explains and those that it would spoil.

#include <optional>
#include <span>
#include <string>

#include "conformance/diagnose/explain/failure.h"

namespace assay::conformance::explaining {

struct Region {
  std::string text;  // "from row 64 of each group on"
  int cost = 0;      // how much was chosen, in bits of evidence
};

// The simplest region that holds every element of `inside` and none of `outside`. Nothing if none of those tried does.
std::optional<Region> find_region(const FailedOutput& output, std::span<const std::int64_t> inside,
                                  std::span<const std::int64_t> outside);

}  // namespace assay::conformance::explaining
