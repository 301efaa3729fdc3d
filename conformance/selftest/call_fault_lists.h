#pragma once
// The lists of faults of calls. Each is made from a table, so that it follows no taste.

#include "conformance/selftest/call_fault.h"

namespace assay::conformance {

// Every attribute of every op: passed over, and taken for its neighbour.
void add_option_faults(std::vector<CallFault>& to);
// Every input of every op: an element or a row too early, the first for all, the last one wrong, passed over, kept from an earlier call.
void add_input_faults(std::vector<CallFault>& to);
// Every output of every op: elements wrong here and there, left out, written beyond.
void add_output_faults(std::vector<CallFault>& to);
// Every output of every op: wrong in one place of a large one, in one replay, in one code or exponent.
void add_rare_faults(std::vector<CallFault>& to);
// Every output of every op: added to what was there, or the work of an earlier call; every input: not waited for.
void add_order_faults(std::vector<CallFault>& to);
// Every scale rule taken for its neighbour and changed in each word; every product rounded in another way.
void add_rule_swaps(std::vector<CallFault>& to);
// Every plan that has a name, with one field changed.
void add_plan_faults(std::vector<CallFault>& to);
// Every row of the table of units, with one field one more or less.
void add_unit_faults(std::vector<CallFault>& to);
// Those that conformance/cases/faults.md names: catalogued.txt says which belongs to which row.
void add_catalogued_faults(std::vector<CallFault>& to);
// What a library may do: every one must pass.
void add_benign_variations(std::vector<CallFault>& to);

}  // namespace assay::conformance
