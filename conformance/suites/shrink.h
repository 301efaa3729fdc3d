#pragma once
// The smallest case line that fails in the same way.

#include <cstdint>
#include <functional>
#include <string>

#include "conformance/cases/case_line.h"
#include "conformance/report/report.h"

namespace assay::conformance {

// What two failures have in common if they are of one kind: the kind of the first finding, and the output that it is about. Empty:
// the case did not fail.
std::string failure_kind(const Judgement& judgement);

struct Shrunk {
  CaseLine line;
  std::int64_t judged = 0;  // lines that were tried
};

// Tries smaller lines, one change at a time, and keeps each that `kind_of` says fails with `kind`: keys at their defaults, fewer
// groups, fewer rows, smaller numbers, in the order of the schema, until none is left. The same on every machine. `step` is called
// for each line that is kept, and may throw.
Shrunk shrink(const CaseLine& line, const std::string& kind, const std::function<std::string(const CaseLine&)>& kind_of,
              const std::function<void(const CaseLine&, const std::string& change)>& step);

}  // namespace assay::conformance
