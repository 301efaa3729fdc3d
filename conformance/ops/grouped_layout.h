#pragma once
// Where a grouped_gemm request says that the rows of its groups lie: attribute `grouped_layout` (spec grouped-gemm-1.4).

#include "conformance/ops/request.h"
#include "reference/gemm/group_rows.h"

namespace assay::conformance {

// Absent: splits.
GroupedLayout grouped_layout_of(const Request& request);

// The rows of the groups, read from in/m_indices, in/psum or in/splits, in any layout. Errors (InvalidArgument): contents that are
// none, a missing tensor or attribute.
GroupRows group_rows_of(const Request& request);

// Rows of the product's output that the call may write, from the first on.
std::int64_t open_rows_of(const Request& request);
// For each of them whether it belongs to no group: then it may hold anything afterwards. Empty where all belong to one.
std::vector<bool> free_rows_of(const Request& request);

}  // namespace assay::conformance
