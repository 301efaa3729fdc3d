#include "conformance/judge/judge_parts.h"
#include "conformance/backends/stated_plan.h"
#include "conformance/judge/stated_numerics.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/judge/compare/compare.h"
#include "reference/types/error.h"

namespace assay::conformance {

std::string headed(const JudgeOptions& options, const std::string& body) {
  const std::string under = options.setting.empty() ? "" : "  under   " + options.setting + "\n";
  std::string text = failure_text(options.title, under + body + (body.ends_with('\n') ? "" : "\n"), options.reproduce);
  text.pop_back();  // the last newline
  return text;
}

std::vector<OutputSpec> wanted_specs(const Case& problem, const Case* expected, const std::vector<std::string>* wanted) {
  const std::vector<OutputSpec> all = outputs_of(Request::read_only(problem));
  std::vector<OutputSpec> specs;
  for (const OutputSpec& spec : all) {
    if (expected != nullptr && expected->out.count(spec.name) == 0) continue;
    if (expected == nullptr && wanted != nullptr && std::find(wanted->begin(), wanted->end(), spec.name) == wanted->end())
      continue;
    specs.push_back(spec);
  }
  const auto known = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const OutputSpec& spec) { return spec.name == name; });
  };
  if (expected != nullptr) {
    for (const auto& [name, tensor] : expected->out) {
      require(known(name), "out/" + name, "given", "only outputs that op " + problem.op + " has for these inputs");
    }
  } else if (wanted != nullptr) {
    for (const std::string& name : *wanted)
      require(known(name), "output " + name, "wanted", "only outputs that op " + problem.op + " has");
  }
  return specs;
}

namespace {

// The call was declared absent: when made, it must return "not supported" and leave memory unchanged.
Judgement judge_absence(CallRunner& runner, const std::string& why, const JudgeOptions& options) {
  Judgement judgement;
  judgement.verdict = Verdict::not_run;
  judgement.text = why.empty() ? "the backend declares this absent and gives no reason" : why;
  for (const std::uint8_t poison : kPoisons) {
    const Attempt tried = runner.refused(runner.call(), poison);
    std::string fault;
    if (tried.status != ASSAY_NOT_SUPPORTED) {
      fault = fmt::format("declared absent, but the call returned '{}'", name_of(tried.status));
    } else if (!tried.damage.empty()) {
      fault = "declared absent, but the call changed memory: " + tried.damage.front();
    }
    if (!fault.empty()) {
      judgement.verdict = Verdict::unproven_skip;
      judgement.text = headed(options, fmt::format("  skip    without proof: {} (reason given: {})", fault, why));
      judgement.findings.push_back(finding_of("skip", fault));
      return judgement;
    }
  }
  return judgement;
}

// The fault of the call itself, or empty.
std::string trouble_of(const Attempt& tried, Judgement& judgement) {
  switch (tried.status) {
    case ASSAY_OK: return "";
    case ASSAY_TIMEOUT: judgement.verdict = Verdict::unfinished; break;
    case ASSAY_OUT_OF_MEMORY: judgement.verdict = Verdict::machine_failed; break;
    default: judgement.verdict = Verdict::failed;
  }
  const std::string why = fmt::format("returned '{}': {}", name_of(tried.status), tried.error);
  judgement.findings.push_back(finding_of("call", why));
  return "  call    " + why;
}

}  // namespace

namespace {

Opening settled(Judgement judgement) { return {true, std::move(judgement), {}}; }

Judgement unanswered(const std::string& why, const JudgeOptions& options, const std::vector<std::string>& memory = {}) {
  Judgement judgement;
  judgement.verdict = Verdict::failed;
  judgement.findings.push_back(finding_of("call", why));
  std::string text = "  call    " + why;
  for (const std::string& line : memory) {
    text += "\n  memory  " + line;
    judgement.findings.push_back(finding_of("memory", line));
  }
  judgement.text = headed(options, text);
  return judgement;
}

}  // namespace

void settle_calls(const std::vector<std::string>& faults, const std::string& others, const JudgeOptions& options,
                  Judgement& judgement) {
  constexpr std::size_t kShown = 5;
  judgement.verdict = faults.empty() ? Verdict::passed : Verdict::failed;
  if (faults.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    judgement.findings.push_back(finding_of("call", faults[i]));
    if (i < kShown) text += "  call    " + faults[i] + "\n";
  }
  if (faults.size() > kShown) text += fmt::format("  and     {} {}\n", faults.size() - kShown, others);
  judgement.text = headed(options, text);
}

bool questions_left_memory(CallRunner& runner, const JudgeOptions& options, Judgement& judgement, bool asked_more) {
  std::string text;
  for (const std::string& line : runner.written_by_questions(asked_more)) {
    text += "  memory  " + line + "\n";
    judgement.findings.push_back(finding_of("memory", line));
  }
  if (text.empty()) return true;
  judgement.verdict = Verdict::failed;
  judgement.text = headed(options, text);
  return false;
}

Opening open_case(CallRunner& runner, const JudgeOptions& options) {
  Opening opening;
  std::string fault = runner.workspace_fault(), absent;
  const Questions& questions = runner.questions();
  const assay_status supported = questions.supports.status, asked = questions.numerics.status;
  if (!questions.supports.made) return settled(unanswered(fault, options));  // workspace_bytes() has lost the device
  if (supported == ASSAY_NOT_SUPPORTED) {
    absent = questions.supports.error;
  } else if (supported != ASSAY_OK) {
    // Another call may have written what it read.
    const bool can_look = supported != ASSAY_DEVICE_LOST && supported != ASSAY_TIMEOUT;
    const std::vector<std::string> memory = can_look ? runner.written_by_questions() : std::vector<std::string>{};
    return settled(
        unanswered(fmt::format("supports() returned '{}': {}", name_of(supported), questions.supports.error), options, memory));
  } else {
    opening.stated = questions.stated;
    if (asked != ASSAY_OK) fault = fmt::format("numerics() returned '{}': {}", name_of(asked), questions.numerics.error);
  }
  if (asked != ASSAY_DEVICE_LOST && !questions_left_memory(runner, options, opening.judgement))
    return settled(std::move(opening.judgement));
  if (supported == ASSAY_NOT_SUPPORTED) return settled(judge_absence(runner, absent, options));
  if (!fault.empty()) return settled(unanswered(fault, options));
  if (const std::string statement = fault_in_numerics(opening.stated); !statement.empty()) {
    opening.judgement.verdict = Verdict::failed;
    opening.judgement.text = headed(options, "  stated  " + statement);
    opening.judgement.findings.push_back(finding_of("statement", statement));
    return settled(std::move(opening.judgement));
  }
  opening.judgement.plan = plan_of(opening.stated);
  opening.judgement.unit = opening.stated.unit;
  return opening;
}

std::string complaint(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, Judgement& judgement,
                      const OtherPoison* other) {
  std::string text = trouble_of(tried, judgement);
  const bool ended = text.empty();
  if (!ended && !tried.damage.empty()) text += "\n";
  for (const std::string& line : tried.damage) {
    text += "  memory  " + line + "\n";
    judgement.findings.push_back(finding_of("memory", line));
  }
  if (!ended) return text;
  text += expectation.differences(tried.outputs, poison, &judgement.details, &judgement.findings, other);
  if (!text.empty()) judgement.verdict = Verdict::failed;
  return text;
}

bool accept(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, const std::string& when,
            const JudgeOptions& options, Judgement& judgement, const std::function<Attempt(std::uint8_t poison)>& again) {
  Attempt repeated;
  const bool right = tried.status == ASSAY_OK && holds(expectation, tried, poison, judgement);
  if (right && tried.damage.empty()) return true;
  if (again && tried.status == ASSAY_OK && !right) {
    try {
      repeated = again(other_poison(poison));
    } catch (const BackendFault&) {
      throw;
    } catch (const BackendError&) {
      repeated.status = ASSAY_FAILED;  // the finding does not depend on this run
    }
  }
  const OtherPoison other{&repeated.outputs, other_poison(poison)};
  const std::string text = complaint(tried, expectation, poison, judgement, repeated.status == ASSAY_OK ? &other : nullptr);
  if (text.empty()) return true;
  for (Finding& each : judgement.findings) each.when = when;
  judgement.text = headed(options, (when.empty() ? "" : "  when    " + when + "\n") + text);
  keep_wrong(tried, expectation, poison, when, options, judgement);
  return false;
}

void keep_wrong(const Attempt& tried, const Expectation& expectation, std::uint8_t poison, const std::string& when,
                const JudgeOptions& options, Judgement& judgement) {
  const bool by_value = std::any_of(judgement.findings.begin(), judgement.findings.end(),
                                    [](const Finding& each) { return each.kind == "bits" || each.kind == "bound"; });
  if (options.keeps_got && by_value) judgement.kept = expectation.kept(tried.outputs, poison, when, judgement);
}

bool holds(const Expectation& expectation, const Attempt& tried, std::uint8_t poison, Judgement& judgement) {
  const bool right = expectation.holds(tried.outputs, poison);
  judgement.predicted = std::max(judgement.predicted, expectation.predicted());
  return right;
}

void put_left_out(const Expectation& expectation, Judgement& judgement) {
  judgement.predicted = Predicted::not_asked;
  judgement.verdict = Verdict::not_tried;
  judgement.text =
      expectation.predicted() == Predicted::computed_case ? "the case is not predicted" : "predicted under other plans only";
}

bool statement_holds(const Expectation& expectation, const JudgeOptions& options, Judgement& judgement) {
  judgement.basis = expectation.basis();
  judgement.expected_by = expectation.expected_by();
  judgement.predicted = std::max(judgement.predicted, expectation.predicted());
  if (expectation.statement_fault().empty()) {
    if (!expectation.is_left_out()) return true;
    put_left_out(expectation, judgement);
    return false;
  }
  judgement.verdict = Verdict::failed;
  judgement.text = headed(options, "  stated  " + expectation.statement_fault());
  judgement.findings.push_back(finding_of("statement", expectation.statement_fault()));
  return false;
}

}  // namespace assay::conformance
