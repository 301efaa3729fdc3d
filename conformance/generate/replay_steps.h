#pragma once
// The inputs of a captured call from one replay to the next.

#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// One case for each replay that the line asks for (`replay=COUNT:WHAT,...`), the first being the line's own inputs. All have
// the same attributes, tensors and shapes; of the contents only WHAT changes:
//
//   data     tensors drawn again, with the seed plus the number of the replay; alpha and beta of each group change places
//   scales   the same for scales and amaxes that are inputs
//   splits   the groups change places: rows of each group rotate by the number of the replay, their sum stays
//   noop     the skip flag follows 0, 1, 1, 0, 1, ...
//
// Errors (InvalidArgument): the line requests no replay; it changes something that the case does not have.
std::vector<Case> replay_steps(const CaseLine& line);

// Whether an input of this name changes with `scales`.
bool changes_with_scales(const std::string& name);

}  // namespace assay::conformance
