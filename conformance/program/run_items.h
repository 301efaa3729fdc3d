#pragma once
// Everything that a run judges, by name: generated cases, recorded ones, the self-check.

#include <string>
#include <vector>

#include "conformance/program/run_options.h"
#include "conformance/program/run_selection.h"

namespace assay::conformance {

struct RunItem {
  std::string suite;  // as in a CaseReport
  std::string key;    // the case line, or the name of a fixture's case
  std::string title;  // the case line, "FILE.h5: NAME", or "self-check: LINE"
};

// All that was selected, of all shards, in a fixed order. Fixture files that cannot be read have no items: the run reports them.
std::vector<RunItem> items_of(const RunSelection& selection, bool with_self_check);

// The options of a run, as far as they decide which cases it judges, from its header. Errors: nlohmann::json::exception.
RunOptions options_of(const nlohmann::json& header);

}  // namespace assay::conformance
