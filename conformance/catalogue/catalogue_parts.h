#pragma once
// The computed parts of the catalogue: pairwise covering, sizes, options, inputs, outputs. The
// written lines: case_text.h.

#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// Appends `more` to `lines`.
void append(std::vector<CaseLine>& lines, std::vector<CaseLine> more);

// `round` 0 belongs to standard; further rounds draw other combinations and other data.
std::vector<CaseLine> covered_lines(int round);

// Both sides of every size at which an implementation could change its code path; of standard.
std::vector<CaseLine> size_lines();

// Sizes that none of `lines` has and that a fault could need: residues of a tile, two large lengths together.
std::vector<CaseLine> remaining_lines(const std::vector<CaseLine>& lines);

// Every option beside every large length of its op, where none of `lines` has the two; of standard.
std::vector<CaseLine> option_lines(const std::vector<CaseLine>& lines);

// Inputs that may be left out, and inputs of which a few bytes change between replays; of standard.
std::vector<CaseLine> input_lines();

// Outputs that are left out: each alone, in every op that has several; of standard.
std::vector<CaseLine> output_lines();

// Scales of which some are negative, beside every option; of standard.
std::vector<CaseLine> negative_scale_lines();

// One long length beside others of at most 8, in every op; of standard.
std::vector<CaseLine> thin_lines();

// Every preset of scale rules with its options; round 0 is of standard, 1 of full.
std::vector<CaseLine> rule_lines(int round);

// Products over data=wide_sums; part of standard.
std::vector<CaseLine> order_free_lines();

// Every row of the table of units and every plan with a name; round 0 is of standard, 1 of full.
std::vector<CaseLine> plan_lines(int round);

// Products whose D shows the unit that computes it, for every kind that has several units: unit_probes.h.
std::vector<CaseLine> unit_probe_lines();

}  // namespace assay::conformance
