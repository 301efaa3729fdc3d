#include "conformance/program/predict_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "conformance/judge/judge.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/progress.h"
#include "conformance/suites/suite.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"
#include "reference/support/parallel.h"

namespace assay::conformance {

using nlohmann::json;

PredictionsWriter::PredictionsWriter(std::unique_ptr<ResultsFile> file, const RecordedPredictions& known)
    : file_(std::move(file)) {
  for (const auto& [line, calls] : known.predicted) {
    for (const auto& [call, entry] : calls) sum_.add(entry);
    done_.insert(line);
  }
  predicted_ = known.predicted.size();
  for (const auto& [line, why] : known.left_out) {
    ++left_out_[why];
    done_.insert(line);
  }
}

void PredictionsWriter::add(const std::string& line, const PredictedCase& made) {
  const std::string why_not = made.why_not.empty() ? "no plan is known" : made.why_not;
  const std::vector<json> records = records_of(line, made.calls, why_not);
  const std::lock_guard lock(mutex_);
  file_->append(records);
  done_.insert(line);
  if (made.calls.empty()) {
    ++left_out_[why_not];
    return;
  }
  for (const json& each : records) sum_.add(each);
  ++predicted_;
}

void PredictionsWriter::could_not_ask(const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++not_asked_;
  why_not_asked_ = why;
}

void PredictionsWriter::finish(std::size_t cases) { file_->append({summary_of(sum_, cases, predicted_, left_out_)}); }

Predictor::Predictor(const BackendChoice& backend, bool asks, StatedPlans given, RecordedPlans recorded, Layer layer,
                     bool progress)
    : backend_(backend),
      asks_(asks),
      given_(std::move(given)),
      recorded_(std::move(recorded)),
      layer_(layer),
      progress_(progress) {}

void Predictor::predict(const std::vector<CaseLine>& cases, PredictionsWriter& writer) const {
  std::vector<const CaseLine*> small, large;
  for (const CaseLine& each : cases) {
    if (!writer.has(to_text(each))) (is_large(each) ? large : small).push_back(&each);
  }
  Progress progress("predict", static_cast<std::int64_t>(small.size() + large.size()), progress_);
  predict_part(small, false, writer, progress);
  predict_part(large, true, writer, progress);
}

void Predictor::predict_part(const std::vector<const CaseLine*>& part, bool one_at_a_time, PredictionsWriter& writer,
                             Progress& progress) const {
  const auto count = static_cast<std::int64_t>(part.size());
  const auto line_of = [&](std::int64_t i) -> const CaseLine& { return *part[static_cast<std::size_t>(i)]; };
  const auto take = [&](const CaseLine& line, const PredictedCase& made) {
    if (!interrupted()) writer.add(to_text(line), made);
    progress.done(to_text(line), false);
  };
  if (asks_) {
    judge_in_parallel(
        backend_, count,
        [&](std::int64_t i, Judged judged) {
          PredictedCase made;
          try {
            made = predict_case_for(judged.backend, line_of(i), backend_.judge_options());
            judged.settle();
          } catch (const BackendError& error) {
            made = {{}, std::string("the backend fails as it is asked: ") + error.what()};
          }
          take(line_of(i), made);
          return Verdict::passed;
        },
        [&](std::int64_t, Judgement judgement) { writer.could_not_ask(judgement.text); }, one_at_a_time);
    return;
  }
  parallel_for(count, one_at_a_time ? std::max<std::int64_t>(count, 1) : 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end && !interrupted(); ++i) take(line_of(i), computed(line_of(i)));
  });
}

PredictedCase Predictor::computed(const CaseLine& line) const {
  StatedPlans plans = given_;
  const auto found = recorded_.find(to_text(line));
  if (found != recorded_.end())
    plans.plans_and_units.insert(plans.plans_and_units.end(), found->second.begin(), found->second.end());
  return predict_case(line, plans, layer_);
}

void say_left_out(const std::map<std::string, std::int64_t>& left_out) {
  for (const auto& [why, number] : left_out) say("not predicted, {} case{}: {}\n", number, number == 1 ? "" : "s", why);
}

}  // namespace assay::conformance
