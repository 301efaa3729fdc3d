#pragma once
// What the attributes of op `quantize_by_rule` determine, for any backend. Reads no tensor.

#include "conformance/ops/request.h"
#include "reference/rules/quantize_by_rule.h"

namespace assay::conformance {

// Rule, output, block, storage and order of the codes. The rule lives as long as the program.
// Errors (InvalidArgument): an attribute that is missing or malformed.
RuleProblem rule_problem_of(const Request& request);

// Columns of the codes of x, which holds gate and up side by side where the rule has an activation.
// Errors (InvalidArgument): no matrix, or an odd number of columns for gate and up.
std::int64_t code_columns(const ScaleRule& rule, const TensorView& x);

// Errors (InvalidArgument): an amax of the tensor or row beside a rule that has none.
void require_amax_of(const ScaleRule& rule, const Request& request);

}  // namespace assay::conformance
