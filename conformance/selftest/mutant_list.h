#pragma once
// Inside the library of mutants: all of them, in one list.

#include <set>
#include <span>
#include <vector>

#include "conformance/selftest/point_state.h"

namespace assay_points {

std::span<const PointRow> all_points();
// The numbers of those that the machine code holds: the compiler removes points that can never be reached, and operators of other
// types than numbers have none.
std::set<std::int32_t> compiled_points();

// Points first, kVariants a point; then those points that are wrong only once; then the faults of calls (call_fault.h).
const std::vector<MutantRow>& all_mutants();
void select_mutant(std::int32_t mutant);
void record_effects(std::uint8_t* effects, const std::uint8_t* meant);

// The reference, with the mutant that is selected.
const assay_backend* mutated_reference();

}  // namespace assay_points
