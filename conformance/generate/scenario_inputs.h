#pragma once
// Inputs of the calls of a scenario, and the memory that several calls share.

#include <map>
#include <string>
#include <vector>

#include "conformance/cases/scenario.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// Inputs of every call in replay `round`, from 0; round 0 are the line's own. All rounds have the same attributes, tensors
// and shapes. Chained and carried inputs are what they would be in a separate call.
//
//   data, scales  as in replay_steps.h
//   splits        change=rotated: groups change places, by one a round; a microbatch or layer further, by one more.
//                 change=edges: scenario_splits() in sequence, repeated, except those that would change the size of a tensor
//   noop          the flag follows RUN, 1, 1, RUN, 1, ..., where RUN is the line's noop, or 0 where that is 1
std::vector<Case> scenario_inputs(const CaseLine& line, const Scenario& scenario, int round);

// Inputs of this call that lie in memory which other calls use too: the name of that memory, by the name of the input.
// Tensors of another type or shape than the first one there have memory of their own.
std::map<std::string, std::string> scenario_memory(const CaseLine& line, const ScenarioCall& call, const Case& inputs);

}  // namespace assay::conformance
