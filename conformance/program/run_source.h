#pragma once
// What the options of `run` ask for: cases, levels, an earlier run to compare with.

#include <string>
#include <vector>

#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/report/claims.h"
#include "conformance/report/earlier_results.h"

namespace assay::conformance {

// An earlier file that the command line names. Errors: cli::ValidationError.
EarlierResults earlier_of(const char* option, const std::string& path);

// Errors: cli::ValidationError.
Level required(const std::string& word);

// The file of --baseline. Errors: cli::ValidationError, also where its cases are of another source.
EarlierResults baseline_of(const RunOptions& options);

// The cases that words and shards select from.
std::vector<CaseLine> cases_of(const RunOptions& options, const std::string& architecture);

// A level says which cases of the catalogue it requires. Errors: cli::ValidationError where other cases would stand for them.
void check_levels(const RunOptions& options, const std::vector<Level>& requirements);

// What a claim needs to know of the selection.
void fill(Claimed& claimed, const RunOptions& options, const RunSelection& selection, const ShardChoice& shard);

}  // namespace assay::conformance
