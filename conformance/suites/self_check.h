#pragma once
// Checks the suite with a backend that must fail: if a backend that writes nothing passed a case, a pass would mean nothing.

#include "conformance/report/report.h"

namespace assay::conformance {

// Judges backend `null` on the smoke profile: every case that has a byte to write must fail. Adds one entry a case
// of shard `index` of `total`.
void self_check(Report& report, bool progress, std::int64_t index = 0, std::int64_t total = 1);

}  // namespace assay::conformance
