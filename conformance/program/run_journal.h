#pragma once
// A run as one of several workers that share a journal.

#include <nlohmann/json_fwd.hpp>

#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/report/report.h"
#include "conformance/suites/judge_line.h"

namespace assay::conformance {

// Judges blocks of the selection until all of them are done. `header` is that of the run. Errors: as Journal.
void run_with_journal(const RunOptions& options, const RunSelection& selection, const SettingsToTry& settings,
                      const nlohmann::json& header, Report& report);

// The options that --journal excludes. Errors: cli::ValidationError.
void check_journal_options(const RunOptions& options, const ShardChoice& shard);
void check_journal_shard(const ShardChoice& shard);

}  // namespace assay::conformance
