#pragma once
// Files of predictions: a line of JSON for the header, one for each predicted call, one for the summary, each with a digest of the file up to
// it (line_chain.h).
//
//   {"record":"header","predictions":1,"assay":"0.1.0","commit":"...","layer":"fast","date":"...","selection":{...},...,"chain":"..."}
//   {"record":"prediction","case":"grouped_gemm kind=... seed=7","step":0,"plan":"unit=...","zero_sign":"kept","elements":4096,
//    "outputs":{"d":"SHA-256 in hex"},"chain":"..."}
//   {"record":"summary","cases":300,"predicted":280,"predictions":512,"left_out":{"REASON":20},"digest":"...","chain":"..."}
//
// "step" counts the replays of a case, and in a scenario the calls of all replays; "linked" is a digest of what a call of a scenario reads from
// others.
// An output has two digests, over 0xff and over 0xa5, where the op leaves a part of it untouched (judge/compare/output_digest.h).
// Predictions are those of one program: of its version and commit, its layer, its files of units and presets.

#include <nlohmann/json_fwd.hpp>

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

nlohmann::json to_json(const std::string& line, const PredictedCall& call, const PredictedOutputs& outputs);

// Of predictions in any order: SHA-256 of their lines, sorted. Two files with one digest predict the same.
class PredictionsDigest {
 public:
  void add(const nlohmann::json& prediction);
  std::string hex() const;
  std::size_t predictions() const { return lines_.size(); }

 private:
  std::set<std::string> lines_;
};

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
  void add(const std::string& path, std::size_t number, const nlohmann::json& entry);

  std::vector<std::pair<std::string, std::string>> files_;
  std::map<std::string, std::shared_ptr<CasePredictions>> cases_;
  const std::shared_ptr<CasePredictions> none_;
  const bool only_;
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<std::string, std::string>> faults_;  // by place
};

// What a file holds that `predict --resume` goes on with: its header, and the predictions up to the last case, which may not be whole.
struct BegunPredictions {
  std::vector<nlohmann::json> predictions;
  std::string last_case;
  bool has_summary = false;
};
// `header`: of this run. Errors: golden::FixtureError; also where the file is of another run.
BegunPredictions begun_predictions(const std::string& path, const nlohmann::json& header);

}  // namespace assay::conformance
