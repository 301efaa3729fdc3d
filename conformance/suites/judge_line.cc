#include "conformance/suites/judge_line.h"

#include <utility>

#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/calls/contract.h"
#include "conformance/judge/calls/faulty_contents.h"
#include "conformance/judge/calls/scenario.h"
#include "conformance/report/predictions_file.h"
#include "conformance/suites/failure_bundle.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::string recipe_of(const CaseLine& line) {
  for (const char* key : {"recipe", "kind"}) {
    for (const Parameter& each : line.parameters) {
      if (each.key == key) return each.value;
    }
  }
  return "-";
}

// What determines the kernel and the plan of a product: "fp8_block 1x128 TN f32".
std::string variety_of(const CaseLine& line) {
  if (line.op != "grouped_gemm") return "";
  std::string text = line.text("kind");
  if (text == "fp8_block" && line.text("layout") != "NT") text += " " + line.text("weight_block");
  if (text == "fp8_per_tensor") text += line.integer("split_accumulator") == 1 ? " split" : " fast";
  return text + " " + line.text("layout") + " " + line.text("d_type");
}

// Cases of one kind get the same statement.
std::string kind_of(const CaseLine& line) { return line.op + " " + recipe_of(line) + " " + variety_of(line); }

// Small enough to be computed by one thread while the backend is busy with other cases.
constexpr std::int64_t kSmallProducts = std::int64_t{1} << 27, kSmallElements = std::int64_t{1} << 21;
constexpr int kFewReplays = 16;

bool can_be_prepared(const CaseLine& line, const BackendChoice& choice) {
  if (line.op == "scenario" || line.integer("contract") == 1 || !fault_word(line).empty() || !choice.expect_by.empty())
    return false;
  const CaseCost cost = cost_of(line);
  return cost.macs <= kSmallProducts && cost.elements <= kSmallElements && replay_plan(line).count <= kFewReplays;
}

// Every exception becomes a judgement of `report`.
template <class Body>
void caught(CaseReport& report, const Judged& judged, const JudgeOptions& options, Body body) {
  try {
    body();
    judged.settle();
  } catch (const BackendFault& fault) {
    report.judgement = judgement_of(fault, judged, options);
  } catch (const InvalidArgument& error) {  // a fault of the suite, not of the backend: reported as such
    report.judgement.verdict = Verdict::failed;
    report.judgement.text = options.title + "\n  the reference refuses this case: " + error.what();
  } catch (const NotSupported& error) {
    report.judgement.verdict = Verdict::failed;
    report.judgement.text = options.title + "\n  the reference cannot answer this case: " + error.what();
  } catch (const BackendError& error) {
    report.judgement = judgement_of(error, options);
  } catch (const std::bad_alloc&) {
    report.judgement.verdict = Verdict::machine_failed;
    report.judgement.text = options.title + "\n  the harness is out of memory";
  }
}

JudgeOptions options_for(const CaseLine& line, const BackendChoice& choice, const std::vector<std::string>& wanted) {
  JudgeOptions options = choice.judge_options();
  options.title = to_text(line);
  options.reproduce =
      choice.reproduce ? choice.reproduce(to_text(line)) : command_name() + " repro " + quoted(to_text(line)) + choice.words();
  options.wanted = &wanted;
  options.order_free = check_kind(line) == CheckKind::order_free;
  options.unit_probes = is_unit_probe(line);
  if (choice.predictions != nullptr) options.predictions = choice.predictions->of(options.title);
  return options;
}

// Another context, in another process, for the rest of a case; null if there is none. `other` owns it.
Backend* restarted(const BackendChoice& choice, std::size_t device, std::unique_ptr<Backend>& other) {
  try {
    other.reset();
    other = choice.open(device);
    other->begin_case();
  } catch (const BackendError&) {  // the next case finds the same, and reports it
    other.reset();
  }
  return other.get();
}

Judgement judge_with_faults(Backend& backend, const CaseLine& line, const JudgeOptions& options) {
  const Case problem = generate(line);
  return judge_faulty_contents(backend, problem, content_faults(line, problem), options);
}

}  // namespace

CaseReport report_for(const CaseLine& line) {
  CaseReport report{kGenerated, name_of(line), to_text(line), line.op, recipe_of(line), {}};
  report.variety = variety_of(line);
  return report;
}

CaseReport judge_line(const CaseLine& line, Judged judged, const BackendChoice& choice, PreparedCase* prepared) {
  CaseReport report = report_for(line);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options = options_for(line, choice, wanted);
  options.expected_by = judged.expecting;
  caught(report, judged, options, [&] {
    if (prepared != nullptr) {
      report.judgement = replay_plan(line).count == 0 ? judge(judged.backend, *prepared, options)
                                                      : judge_replay(judged.backend, *prepared, options);
      return;
    }
    report.judgement = line.op == "scenario"           ? judge_scenario(judged.backend, line, options)
                       : line.integer("contract") == 1 ? judge_contract(judged.backend, generate(line), options)
                       : !fault_word(line).empty()     ? judge_with_faults(judged.backend, line, options)
                       : replay_plan(line).count == 0  ? judge(judged.backend, generate(line), nullptr, options)
                                                       : judge_replay(judged.backend, replay_steps(line), options);
  });
  if (choice.save_got != nullptr) choice.save_got->save(report);
  return report;
}

std::vector<CaseReport> judge_under_settings(const CaseLine& line, Judged judged, const BackendChoice& choice,
                                             const SettingsToTry& settings) {
  CaseReport report = report_for(line);
  const std::vector<std::string> wanted = wanted_outputs(line);
  JudgeOptions options = options_for(line, choice, wanted);
  options.expected_by = judged.expecting;
  std::vector<CaseReport> reports;
  caught(report, judged, options, [&] {
    const Case problem = generate(line);
    std::unique_ptr<Backend> other;
    const Recovery recovery{
        [&](const BackendFault& fault, const JudgeOptions& under) { return judgement_of(fault, judged, under); },
        [&] { return restarted(choice, judged.device, other); }};
    for (JudgedSetting& each :
         judge_settings(judged.backend, problem, settings.all_algorithms, settings.axes, options, &recovery)) {
      CaseReport made = report_for(line);
      made.setting = each.setting.text;
      made.judgement = std::move(each.judgement);
      if (choice.save_got != nullptr) choice.save_got->save(made);
      reports.push_back(std::move(made));
    }
    if (other != nullptr) other->close();
  });
  if (reports.empty() || !report.judgement.text.empty()) reports.push_back(std::move(report));  // a fault of the case as a whole
  return reports;
}

std::optional<assay_numerics> Statements::of(const CaseLine& line) const {
  const std::lock_guard lock(mutex_);
  const auto found = stated_.find(kind_of(line));
  return found == stated_.end() ? std::nullopt : std::optional(found->second);
}

void Statements::note(const CaseLine& line, const assay_numerics& stated) {
  const std::lock_guard lock(mutex_);
  stated_[kind_of(line)] = stated;
}

std::unique_ptr<PreparedCase> prepare(const CaseLine& line, const BackendChoice& choice, const Statements& statements) {
  if (!can_be_prepared(line, choice)) return nullptr;
  try {
    const std::vector<std::string> wanted = wanted_outputs(line);
    JudgeOptions options = options_for(line, choice, wanted);
    std::vector<Case> steps = replay_plan(line).count == 0 ? std::vector<Case>{} : replay_steps(line);
    if (steps.empty()) steps.push_back(generate(line));
    return std::make_unique<PreparedCase>(std::move(steps), options, statements.of(line));
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace assay::conformance
