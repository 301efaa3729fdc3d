#pragma once
// Files of predictions of the parts of one run, joined: of shards, or of the workers of a journal.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/judge/predictions.h"
#include "conformance/report/merge.h"

namespace assay::conformance {

// Whether a file, or the folder of a journal, holds predictions rather than verdicts. False also where it cannot be read.
bool holds_predictions(const std::string& path);

struct MergedPredictions {
  nlohmann::json header;         // what decides about predictions: no dates, hosts and shards
  std::int64_t whole_cases = 0;  // of all parts together
  std::vector<MergedFile> files;
  std::map<std::string, std::map<PredictedCall, nlohmann::json>> predicted;  // by case line
  std::map<std::string, std::string> left_out;                               // by case line: why
  std::vector<std::string> twice;                                            // "LINE: in a.jsonl and in b.jsonl"
  std::int64_t same_files = 0;  // files that hold the bytes of another one, and count once

  std::int64_t missing() const;  // cases that no part has
  std::string digest() const;    // of all predictions, as `predict` prints it
};

// The order of `paths` does not matter. Errors: golden::FixtureError for a file that cannot be read or was changed, for two files of different
// runs, which names the first difference, and for two files that predict different outputs of one call.
MergedPredictions merge_predictions(const std::vector<std::string>& paths);

// As a file: the header, the cases in the order of their lines, a summary. It has the same bytes however the work was divided.
std::string predictions_text(const MergedPredictions& merged);

}  // namespace assay::conformance
