#pragma once
// What the attributes of op `quantize_by_rule` determine, for any backend. Reads no tensor.

#include "conformance/ops/request.h"
#include "reference/rules/quantize_by_rule.h"

namespace assay::conformance {

// Rule, output, block, storage and order of the codes. The rule lives as long as the program.
// Errors (InvalidArgument): an attribute that is missing or malformed.
RuleProblem rule_problem_of(const Request& request);

}  // namespace assay::conformance
