#pragma once
// The scale rule of a line of op `quantize_by_rule`, and what the line or the rule chooses with it.

#include "conformance/cases/case_line.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance {

struct RuleChoice {
  const ScaleRule* rule = nullptr;
  Format output = Format::e4m3;
  BlockShape block;
  ScaleStorage storage;
};

// Errors (InvalidArgument): a preset that is not known, with the nearest; an output that the rule does not have.
RuleChoice rule_choice(const CaseLine& line);

// All checks of such a line that concern the rule.
void require_rule(const CaseLine& line);

}  // namespace assay::conformance
