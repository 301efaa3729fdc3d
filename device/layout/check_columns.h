#pragma once
// Checks of the alignment of columns (column_layout.h), on the host.

#include <cstdint>
#include <string>

#include "device/layout/check_rows.h"
#include "device/layout/column_layout.h"

namespace assay::device {

// `taken`: the call may have aligned columns; `by`: which calls may.
inline void check_column_alignment(std::int64_t alignment, bool taken, const char* by) {
  if (alignment == 1 || (taken && alignment == kAlignedColumns)) return;
  require(false, "column_alignment", alignment, taken ? "1 or 16" : std::string("1, but for ") + by);
}

}  // namespace assay::device
