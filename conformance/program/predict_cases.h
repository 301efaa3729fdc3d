#pragma once
// The predictions of many cases, in parallel, into a file that grows.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/program/predict_case.h"
#include "conformance/report/predictions_file.h"
#include "conformance/report/results_file.h"
#include "conformance/suites/backend_choice.h"

namespace assay::conformance {

// Takes the cases as they are predicted. Safe from any thread.
class PredictionsWriter {
 public:
  // `known`: cases that are not predicted again.
  PredictionsWriter(std::unique_ptr<ResultsFile> file, const RecordedPredictions& known);

  bool has(const std::string& line) const { return done_.count(line) != 0; }
  void add(const std::string& line, const PredictedCase& made);
  // The backend could not be asked about a case: the case is not done.
  void could_not_ask(const std::string& why);

  // Appends the summary.
  void finish(std::size_t cases);

  const PredictionsDigest& digest() const { return sum_; }
  std::size_t predicted() const { return predicted_; }
  const std::map<std::string, std::int64_t>& left_out() const { return left_out_; }
  std::int64_t not_asked() const { return not_asked_; }
  const std::string& why_not_asked() const { return why_not_asked_; }

 private:
  std::unique_ptr<ResultsFile> file_;
  PredictionsDigest sum_;
  std::set<std::string> done_;
  std::size_t predicted_ = 0;
  std::map<std::string, std::int64_t> left_out_;  // by reason
  std::int64_t not_asked_ = 0;
  std::string why_not_asked_;
  std::mutex mutex_;
};

class Progress;

// Plan and unit that earlier runs have recorded, by case line.
using RecordedPlans = std::map<std::string, std::set<std::pair<std::string, std::string>>>;

class Predictor {
 public:
  // `asks`: the plans are those that the backend states. Else they are `given`, and those that were recorded for the case.
  Predictor(const BackendChoice& backend, bool asks, StatedPlans given, RecordedPlans recorded, Layer layer, bool progress);

  // Predicts those that the writer does not have, until the run is interrupted.
  void predict(const std::vector<CaseLine>& cases, PredictionsWriter& writer) const;

 private:
  void predict_part(const std::vector<const CaseLine*>& part, bool one_at_a_time, PredictionsWriter& writer,
                    Progress& progress) const;
  PredictedCase computed(const CaseLine& line) const;

  const BackendChoice& backend_;
  const bool asks_;
  const StatedPlans given_;
  const RecordedPlans recorded_;
  const Layer layer_;
  const bool progress_;
};

// "not predicted, 3 cases: REASON", a line each.
void say_left_out(const std::map<std::string, std::int64_t>& left_out);

}  // namespace assay::conformance
