#include "conformance/program/predict_scenario.h"

#include <algorithm>

#include "conformance/generate/scenario_inputs.h"
#include "conformance/judge/calls/scenario_links.h"
#include "conformance/judge/memory/poisons.h"

namespace assay::conformance {
namespace {

JudgeOptions options_of_call(const ScenarioCall& call, Layer layer) {
  JudgeOptions options;
  options.layer = layer;
  options.order_free = check_kind(call.line) == CheckKind::order_free;
  options.explains = false;
  options.answers_later = true;
  return options;
}

bool has_all(const std::vector<ScenarioLink>& links, const std::vector<Outputs>& outputs) {
  return std::all_of(links.begin(), links.end(),
                     [&](const ScenarioLink& link) { return outputs[link.call].count(link.output) != 0; });
}

}  // namespace

ScenarioPredictor::ScenarioPredictor(const CaseLine& line, Layer layer)
    : line_(line), layer_(layer), scenario_(scenario_of(line)), first_(scenario_inputs(line, scenario_, 0)) {
  for (std::size_t c = 0; c < calls(); ++c) specs_.push_back(specs_of_call(scenario_.calls[c], first_[c]));
}

bool ScenarioPredictor::is_read(std::size_t call) const {
  return std::any_of(scenario_.calls.begin(), scenario_.calls.end(), [&](const ScenarioCall& each) {
    const auto reads = [&](const ScenarioLink& link) { return link.call == call; };
    return std::any_of(each.chained.begin(), each.chained.end(), reads) ||
           std::any_of(each.carried.begin(), each.carried.end(), reads);
  });
}

std::vector<Outputs> ScenarioPredictor::replay(std::size_t round, std::uint8_t poison, const std::vector<Outputs>& before,
                                               const std::vector<assay_numerics>& stated,
                                               std::map<PredictedCall, PredictedOutputs>& predictions, std::string& why_not) {
  std::vector<Case> problems = scenario_inputs(line_, scenario_, static_cast<int>(round));
  std::vector<Outputs> outputs(calls());
  for (std::size_t c = 0; c < calls(); ++c) {
    const ScenarioCall& call = scenario_.calls[c];
    if (!has_all(call.chained, outputs) || (round > 0 && !has_all(call.carried, before))) continue;
    put_links(call.chained, outputs, problems[c]);
    if (round > 0) put_links(call.carried, before, problems[c]);
    const Expectation expectation(problems[c], nullptr, specs_[c], stated[c], options_of_call(call, layer_),
                                  step_of(scenario_, round, c), digest_of_links(call, problems[c]));
    if (!expectation.statement_fault().empty()) {
      why_not = "no plan that was given fits the case";
    } else if (expectation.basis() == CheckBasis::bound) {
      why_not = "no plan is known, and bounds have no digest";
    } else {
      const PredictedCall key = expectation.predicted_call();
      if (predictions.count(key) == 0) predictions.emplace(key, expectation.predicted_outputs());
      if (is_read(c)) outputs[c] = expectation.expected_outputs(poison);
    }
  }
  return outputs;
}

void ScenarioPredictor::add(const std::vector<assay_numerics>& stated, std::map<PredictedCall, PredictedOutputs>& predictions,
                            std::string& why_not) {
  // What nothing writes keeps the poison, and a call may read it: the poisons are those of judge_scenario().
  std::vector<Outputs> before(calls());
  if (scenario_.warm) replay(0, kPoisons[1], before, stated, predictions, why_not);
  for (int round = 0; round < scenario_.replay.count; ++round)
    before = replay(static_cast<std::size_t>(round), kPoisons[round % 2], before, stated, predictions, why_not);
}

}  // namespace assay::conformance
