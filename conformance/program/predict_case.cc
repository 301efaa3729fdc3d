#include "conformance/program/predict_case.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "conformance/backends/questions.h"
#include "conformance/backends/stated_plan.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/expectation_request.h"
#include "conformance/judge/judge_parts.h"
#include "conformance/judge/stated_numerics.h"
#include "conformance/program/predict_scenario.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::vector<Case> steps_of(const CaseLine& line) {
  if (replay_plan(line).count > 0) return replay_steps(line);
  std::vector<Case> one;
  one.push_back(generate(line));
  return one;
}

assay_numerics statement_of(const std::string& plan, const std::string& unit, int keeps_zero_sign) {
  assay_numerics stated = Questions().stated;
  put_plan(stated, plan);
  std::snprintf(stated.unit, sizeof stated.unit, "%s", unit.c_str());
  stated.keeps_zero_sign = keeps_zero_sign;
  return stated;
}

// The plan that the reference follows where none is asked for; empty: none is known.
std::string plan_of_reference(const Case& problem) {
  try {
    return numerics_of(request_of(problem, problem.attributes)).plan;
  } catch (const NotSupported&) {
    return "";
  }
}

// Adds what is expected of every step under `stated`, unless it is known.
void add_statement(const std::vector<Case>& steps, const std::vector<OutputSpec>& specs, const assay_numerics& stated,
                   const JudgeOptions& options, std::map<PredictedCall, PredictedOutputs>& calls, std::string& why_not) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Expectation expectation(steps[i], nullptr, specs, stated, options, static_cast<std::int64_t>(i));
    if (!expectation.statement_fault().empty()) {
      why_not = "no plan that was given fits the case";
      return;
    }
    if (expectation.basis() == CheckBasis::bound) {
      why_not = "no plan is known, and bounds have no digest";
      return;
    }
    const PredictedCall call = expectation.predicted_call();
    if (calls.count(call) == 0) calls.emplace(call, expectation.predicted_outputs());
  }
}

JudgeOptions options_of(const CaseLine& line, Layer layer) {
  JudgeOptions options;
  options.layer = layer;
  options.order_free = check_kind(line) == CheckKind::order_free;
  options.unit_probes = is_unit_probe(line);
  options.explains = false;
  options.answers_later = true;
  return options;
}

// Body for one case: its errors become the reason why it is not predicted.
template <class Body>
PredictedCase predicted(Body body) {
  PredictedCase made;
  try {
    std::map<PredictedCall, PredictedOutputs> calls;
    body(calls, made.why_not);
    made.calls.assign(calls.begin(), calls.end());
  } catch (const InvalidArgument& error) {
    made = {{}, std::string("the reference refuses the case: ") + error.what()};
  } catch (const NotSupported& error) {
    made = {{}, std::string("the reference cannot answer: ") + error.what()};
  }
  return made;
}

template <class Body>
PredictedCase predicted_call_of(const CaseLine& line, Layer layer, Body body) {
  return predicted([&](std::map<PredictedCall, PredictedOutputs>& calls, std::string& why_not) {
    const std::vector<std::string> wanted = wanted_outputs(line);
    JudgeOptions options = options_of(line, layer);
    options.wanted = &wanted;
    const std::vector<Case> steps = steps_of(line);
    const std::vector<OutputSpec> specs = wanted_specs(steps[0], nullptr, &wanted);
    for (const assay_numerics& stated : body(steps[0], specs, options, why_not))
      add_statement(steps, specs, stated, options, calls, why_not);
  });
}

template <class Body>
PredictedCase predicted_scenario(const CaseLine& line, Layer layer, Body body) {
  return predicted([&](std::map<PredictedCall, PredictedOutputs>& calls, std::string& why_not) {
    ScenarioPredictor predictor(line, layer);
    std::vector<std::vector<assay_numerics>> of_calls;  // of each call as many
    for (std::size_t c = 0; c < predictor.calls(); ++c)
      of_calls.push_back(body(predictor.problem(c), predictor.specs(c), options_of(predictor.line(c), layer), why_not));
    if (std::any_of(of_calls.begin(), of_calls.end(), [](const auto& each) { return each.empty(); })) return;
    std::size_t most = 0;
    for (const auto& each : of_calls) most = std::max(most, each.size());
    for (std::size_t i = 0; i < most; ++i) {
      std::vector<assay_numerics> together;
      for (const auto& each : of_calls) together.push_back(each[i % each.size()]);
      predictor.add(together, calls, why_not);
    }
  });
}

// What a backend may state about a call under these plans, with every sign of zero.
std::vector<assay_numerics> statements_under(const StatedPlans& plans, const Case& problem, const JudgeOptions& options) {
  std::vector<std::pair<std::string, std::string>> stated = plans.plans_and_units;
  if (product_output(problem.op).empty()) {
    stated = {{"", ""}};
  } else if (stated.empty()) {
    stated = {{plan_of_reference(problem), ""}};
  }
  if (options.order_free) stated.emplace_back("", "");
  std::vector<assay_numerics> made;
  for (const auto& [plan, unit] : stated) {
    for (const int keeps : {1, 0, -1}) made.push_back(statement_of(plan, unit, keeps));
  }
  return made;
}

// What the backend states about a call; nothing where it does not take it.
std::vector<assay_numerics> statement_of_backend(Backend& backend, const Case& problem, const std::vector<OutputSpec>& specs,
                                                 const JudgeOptions& options, std::string& why_not) {
  const CallRunner runner(backend, problem, specs, options.algorithm, options.timeout_ms);
  const Questions& questions = runner.questions();
  if (questions.supports.status == ASSAY_NOT_SUPPORTED) {
    why_not = "the backend does not support the case";
  } else if (!runner.workspace_fault().empty() || !questions.supports.is_ok() || !questions.numerics.is_ok() ||
             !fault_in_numerics(questions.stated).empty()) {
    why_not = "the backend does not answer what is asked before a call";
  } else {
    return {questions.stated};
  }
  return {};
}

}  // namespace

PredictedCase predict_case(const CaseLine& line, const StatedPlans& plans, Layer layer) {
  const auto state = [&](const Case& problem, const auto&, const JudgeOptions& options, std::string&) {
    return statements_under(plans, problem, options);
  };
  return line.op == "scenario" ? predicted_scenario(line, layer, state) : predicted_call_of(line, layer, state);
}

PredictedCase predict_case_for(Backend& backend, const CaseLine& line, const JudgeOptions& options) {
  const auto state = [&](const Case& problem, const std::vector<OutputSpec>& specs, const auto&, std::string& why_not) {
    return statement_of_backend(backend, problem, specs, options, why_not);
  };
  return line.op == "scenario" ? predicted_scenario(line, options.layer, state) : predicted_call_of(line, options.layer, state);
}

}  // namespace assay::conformance
