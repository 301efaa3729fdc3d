#pragma once
// Internal to the generator: where the rows of groups lie in a product's operands, for key `grouped_layout`.

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"
#include "reference/gemm/group_rows.h"

namespace assay::conformance::inputs {

// The rows of the line's groups. A grouped_layout other than splits becomes attributes and a tensor of `result`, splits the tensor
// of that name. With m_indices the groups stand in another order than their numbers: from group sum(splits) mod G on.
GroupRows place_rows(const CaseLine& line, Case& result);

// Writes what rows of no group hold into an untransposed matrix, code by code: NaN or the largest finite value as the line says;
// in layout NT 0 up to the alignment of the last group.
void poison_rows_between(const CaseLine& line, const GroupRows& rows, Tensor& matrix);

}  // namespace assay::conformance::inputs
