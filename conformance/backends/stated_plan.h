#pragma once
// The accumulation plan in a statement: by name, or as a line, which may be longer than `plan` is.

#include <cstdio>
#include <string>
#include <string_view>

#include "conformance/backend.h"

namespace assay::conformance {

// The plan that is stated; empty: none. A line in `plan_line` says it whole; `plan` may then name it too.
inline std::string plan_of(const assay_numerics& stated) { return stated.plan_line[0] != '\0' ? stated.plan_line : stated.plan; }

inline void put_plan(assay_numerics& stated, std::string_view name_or_line) {
  const bool fits = name_or_line.size() < sizeof stated.plan;
  char* const text = fits ? stated.plan : stated.plan_line;
  std::snprintf(text, fits ? sizeof stated.plan : sizeof stated.plan_line, "%.*s", static_cast<int>(name_or_line.size()),
                name_or_line.data());
}

}  // namespace assay::conformance
