#pragma once
// Files of predictions: a line of JSON for the header, one for each predicted call, one for the summary, each with a digest of the file up to
// it (line_chain.h).
//
//   {"record":"header","predictions":1,"assay":"0.1.0","commit":"...","layer":"fast","date":"...","selection":{...},...,"chain":"..."}
//   {"record":"prediction","case":"grouped_gemm kind=... seed=7","step":0,"plan":"unit=...","zero_sign":"kept","elements":4096,
//    "outputs":{"d":"SHA-256 in hex"},"of":2,"chain":"..."}
//   {"record":"left_out","case":"grouped_gemm kind=... seed=8","why":"no plan is known, and bounds have no digest","chain":"..."}
//   {"record":"summary","cases":300,"predicted":280,"predictions":512,"left_out":{"REASON":20},"digest":"...","chain":"..."}
//
// "step" counts the replays of a case, and in a scenario the calls of all replays; "linked" is a digest of what a call of a scenario reads from
// others. "of" is the number of predictions of the case, where there are several: a case is whole once all are there. A summary that merge
// wrote counts as "missing" the cases that no part of the run has.
// An output has two digests, over 0xff and over 0xa5, where the op leaves a part of it untouched (judge/compare/output_digest.h).
// Predictions are those of one program: of its version and commit, its layer, its files of units and presets.

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/judge/predictions.h"

namespace assay::conformance {

inline constexpr int kPredictionsFormat = 1;

std::string_view name_of(Layer layer);

// The members of a header that say whose predictions these are: assay, commit, layer, units, presets.
nlohmann::json predictor_of(Layer layer);

// The records of a case: one for each call, or where there are none one that says why it is not predicted.
std::vector<nlohmann::json> records_of(const std::string& line,
                                       const std::vector<std::pair<PredictedCall, PredictedOutputs>>& calls,
                                       const std::string& why_not);

// Of predictions in any order: SHA-256 of their lines, sorted. Two files with one digest predict the same.
class PredictionsDigest {
 public:
  void add(const nlohmann::json& prediction);
  std::string hex() const;
  std::size_t predictions() const { return lines_.size(); }

 private:
  std::set<std::string> lines_;
};

struct PredictionRecord;

// Predictions of all files of a run.
class Predictions {
 public:
  // `layer`: the one by which the backend is judged. Errors: golden::FixtureError naming file, line and reason: it cannot be read, is of another
  // program, was changed or cut off, has no summary, or contradicts another file.
  Predictions(const std::vector<std::string>& paths, Layer layer, bool only);

  // Those of a case; without calls where there are none. Valid as long as this is.
  std::shared_ptr<const CasePredictions> of(const std::string& line) const;
  // Path and SHA-256 of each file, for headers.
  nlohmann::json files() const;
  std::size_t cases() const { return cases_.size(); }
  // Predictions that the reference contradicts: file and text.
  std::vector<std::pair<std::string, std::string>> faults() const;

 private:
  void read(const std::string& path, Layer layer);
  void add(const std::string& path, PredictionRecord record);

  std::vector<std::pair<std::string, std::string>> files_;
  std::map<std::string, std::shared_ptr<CasePredictions>> cases_;
  const std::shared_ptr<CasePredictions> none_;
  const bool only_;
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::string>> faults_;  // by place
};

// What a file holds, of cases that are whole: it may be one that was cut off.
struct RecordedPredictions {
  nlohmann::json header;
  std::map<std::string, std::map<PredictedCall, nlohmann::json>> predicted;  // by case line
  std::map<std::string, std::string> left_out;                               // by case line: why
  bool has_summary = false;

  // Takes the cases of another file of the same run.
  void merge(RecordedPredictions other);
};
// Errors: golden::FixtureError naming file, line and reason: it cannot be read, has no header, was changed, or contradicts itself.
RecordedPredictions recorded_predictions(const std::string& path);

// That `predict --resume` goes on with; `header`: of this run. Errors: as above; also where the file is of another run.
RecordedPredictions begun_predictions(const std::string& path, const nlohmann::json& header);

// The summary of such a file. `cases`: that were selected.
nlohmann::json summary_of(const PredictionsDigest& digest, std::size_t cases, std::size_t predicted,
                          const std::map<std::string, std::int64_t>& left_out);

}  // namespace assay::conformance
