#pragma once
// What `assay merge` says of the parts of a run, whether they hold verdicts or predictions.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"
#include "conformance/report/exit_code.h"
#include "conformance/report/merge.h"

namespace assay::conformance {

// The selection of the merged run, made again by this program.
struct SelectedAgain {
  RunOptions options;
  RunSelection selection;
  std::string why_not;  // it cannot be made again; empty: it was
};
// `header`: of the whole run.
SelectedAgain select_again(const nlohmann::json& header);

// Shards of which no file is there, "2 shards of the run are missing: 3/8, 5/8"; empty: none. Only where all files are shards of one number of
// them.
std::string missing_shards(const std::vector<MergedFile>& files);

// A line for each file whose part did not end; `verb` goes on with it.
void say_not_ended(const std::vector<MergedFile>& files, const char* verb);

// "WHAT: TEXT", a line each, at most `most` of them.
void say_some(const char* what, const std::vector<std::string>& all, int most);
void say_same_files(std::int64_t same_files);

// assay merge of files of predictions. Errors: golden::FixtureError, golden::OutputError.
ExitCode merge_prediction_files(const std::vector<std::string>& paths, const std::string& output, int show);

}  // namespace assay::conformance
