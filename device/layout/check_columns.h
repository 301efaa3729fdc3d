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

// Why a product that reads dense columns alone does not take a call; empty: it does.
inline std::string aligned_columns_missing(const std::string& product, std::int64_t alignment) {
  if (alignment == 1) return "";
  return product + " reads columns that follow one another; those of the call begin at multiples of " +
         std::to_string(alignment) + " bytes (fp8_block_grouped_gemm() takes them)";
}

}  // namespace assay::device
