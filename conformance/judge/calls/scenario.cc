#include "conformance/judge/calls/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>

#include "conformance/backends/stated_plan.h"
#include "conformance/cases/scenario.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/scenario_inputs.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/calls/scenario_links.h"
#include "conformance/judge/calls/scenario_stage.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/judge/expectation.h"
#include "conformance/judge/judge_parts.h"
#include "conformance/judge/memory/poisons.h"
#include "conformance/judge/stated_numerics.h"

namespace assay::conformance {
namespace {

// A digest of all bytes, so that a replay can be compared with a later run without storing its outputs.
std::uint64_t digest(const std::vector<std::byte>& bytes) {
  std::uint64_t sum = 0x9E37'79B9'7F4A'7C15 ^ bytes.size();
  const auto mix = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * 0xD6E8'FEB8'6659'FD93;
    sum ^= sum >> 32;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return sum;
}

class ScenarioJudge {
 public:
  ScenarioJudge(Backend& backend, const CaseLine& line, const JudgeOptions& options)
      : backend_(backend), line_(line), options_(options), scenario_(scenario_of(line)) {}

  Judgement judge_all() {
    for (int round = 0; round < scenario_.replay.count; ++round) rounds_.push_back(scenario_inputs(line_, scenario_, round));
    for (std::size_t c = 0; c < scenario_.calls.size(); ++c) specs_.push_back(specs_of_call(scenario_.calls[c], rounds_[0][c]));
    stage_ =
        std::make_unique<ScenarioStage>(backend_, line_, scenario_, rounds_[0], specs_, options_.algorithm, options_.timeout_ms);
    if (find_absence()) return judgement_;
    judgement_.verdict = Verdict::passed;
    bool good = ask();
    if (good && !backend_.can_capture()) {
      judgement_.way = "made eagerly instead of replayed, with inputs changed in place: the backend has no capture";
      good = replays(false);
    } else if (good) {
      good = (!scenario_.warm || meets(0, run(0, kPoisons[1], false), kPoisons[1], "made once before the capture", false)) &&
             capture() && replays(true) && eagerly();
    }
    if (!good) return judgement_;
    judgement_.text.clear();
    return judgement_;
  }

 private:
  bool fail(Verdict verdict, const std::string& body) {
    judgement_.verdict = verdict;
    const std::string under = options_.setting.empty() ? "" : "  under   " + options_.setting + "\n";
    judgement_.text = failure_text(options_.title, under + body + (body.ends_with('\n') ? "" : "\n"), options_.reproduce);
    judgement_.text.pop_back();  // the last newline
    return false;
  }

  static Verdict verdict_of(assay_status status) {
    switch (status) {
      case ASSAY_TIMEOUT: return Verdict::unfinished;
      case ASSAY_OUT_OF_MEMORY: return Verdict::machine_failed;
      default: return Verdict::failed;
    }
  }

  JudgeOptions options_for(std::size_t call) const {
    JudgeOptions options = options_;
    options.order_free = check_kind(scenario_.calls[call].line) == CheckKind::order_free;
    return options;
  }

  // If a call is declared absent, the scenario is not run; judge() checks the proof.
  bool find_absence() {
    for (std::size_t c = 0; c < scenario_.calls.size(); ++c) {
      if (scenario_.calls[c].module > 0) continue;  // the other layer's calls are of the same kind
      if (backend_.table().supports(backend_.context(), &stage_->call(c)) != ASSAY_NOT_SUPPORTED) continue;
      stage_.reset();
      std::vector<std::string> wanted;
      for (const OutputSpec& spec : specs_[c]) wanted.push_back(spec.name);
      JudgeOptions options = options_for(c);
      options.wanted = &wanted;
      options.predictions = nullptr;  // they are of the scenario's calls
      judgement_ = judge(backend_, rounds_[0][c], nullptr, options);
      if (judgement_.verdict == Verdict::passed) {
        fail(Verdict::failed,
             fmt::format("  call    {}: declared absent together with others, but available by itself", scenario_.place(c)));
      }
      return true;
    }
    return false;
  }

  // Checks that need no call.
  bool ask() {
    stated_.resize(scenario_.calls.size());
    const assay_backend& table = backend_.table();
    for (std::size_t c = 0; c < scenario_.calls.size(); ++c) {
      assay_numerics& stated = stated_[c];
      stated.struct_size = sizeof stated;
      stated.keeps_zero_sign = stated.deterministic = stated.batch_invariant = -1;
      const char* asked = "supports";
      assay_status status = table.supports(backend_.context(), &stage_->call(c));
      if (status == ASSAY_OK) {
        asked = "numerics";
        status = table.numerics(backend_.context(), &stage_->call(c), &stated);
      }
      if (status != ASSAY_OK) {
        const std::string why = fmt::format("  call    {}: {}() returned '{}': {}\n", scenario_.place(c), asked, name_of(status),
                                            backend_.last_error());
        const bool can_look = status != ASSAY_DEVICE_LOST && status != ASSAY_TIMEOUT;
        return fail(verdict_of(status), why + (can_look ? memory_text() : ""));  // another call may have written what it read
      }
      if (const std::string fault = fault_in_numerics(stated); !fault.empty()) {
        return fail(Verdict::failed, "  stated  " + scenario_.place(c) + ": " + fault);
      }
      const std::string plan = plan_of(stated);
      if (!plan.empty() && judgement_.plan.find(plan) == std::string::npos)
        judgement_.plan += (judgement_.plan.empty() ? "" : ", ") + plan;
    }
    if (!stage_->workspace_fault().empty()) return fail(Verdict::failed, "  call    " + stage_->workspace_fault());
    const std::string memory = memory_text();
    return memory.empty() || fail(Verdict::failed, memory);
  }

  std::string memory_text() {
    std::string text;
    for (const std::string& line : stage_->written_by_questions()) text += "  memory  " + line + "\n";
    return text;
  }

  bool capture() {
    assay_status status = ASSAY_OK;
    const std::optional<std::string> fault = stage_->capture(status);
    if (!fault) return true;
    return fail(status == ASSAY_OK ? Verdict::failed : verdict_of(status), "  when    capture\n  call    " + *fault);
  }

  // The calls in every round, launched as captured or made eagerly.
  bool replays(bool launched) {
    const std::string one = launched ? "replay" : "round";
    const int count = scenario_.replay.count;
    const Judgement before = judgement_;
    Judgement first;  // after the first round
    for (int i = 0; i <= count; ++i) {
      const auto round = static_cast<std::size_t>(i % count);
      if (i > 0 && round > 0) carry(round);
      // The last poison is the first's: with the same inputs, all bytes must come out the same.
      const std::uint8_t poison = i == count ? kPoisons[0] : kPoisons[i % 2];
      const std::string when = i == count ? fmt::format("the first inputs again, after {} {}s", count, one)
                                          : fmt::format("{} {} of {}", one, i + 1, count);
      // The last two rounds of small calls run on a busy stream, one read on it and one on another.
      const Late late = i == 0 || first.elements - before.elements > kLateElements || i < count - 1 ? Late::no
                        : i < count                                                                 ? Late::waited
                                                                                                    : Late::unwaited;
      const std::string how = late == Late::no ? "" : ", " + ScenarioStage::text_of(late);
      const ScenarioRun made = run(round, poison, launched, late);
      if (i == count && made.status == ASSAY_OK && made.damage.empty() && digests(made) == replayed_[0]) {
        count_again(before, first);  // the same bytes over the same poison: right as they were
        continue;
      }
      if (!meets(round, made, poison, when + how, launched)) return false;
      if (i == 0) first = judgement_;
      if (i < count) {
        replayed_.push_back(digests(made));
      } else if (!same(round, made, when, one + " 1")) {
        return false;
      }
      latest_ = made.outputs;
    }
    return true;
  }

  // The calls one by one, on the inputs of every replay: graphs and eager execution give the same bits.
  bool eagerly() {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      const std::uint8_t poison = kPoisons[round % 2];
      const std::string when = fmt::format("made one by one, on the inputs of replay {} of {}", round + 1, rounds_.size());
      const ScenarioRun made = run(round, poison, false);
      if (made.status == ASSAY_OK && made.damage.empty() && digests(made) == replayed_[round]) continue;
      if (!meets(round, made, poison, when, false)) return false;
      if (!same(round, made, when, fmt::format("replay {}", round + 1))) return false;
    }
    return true;
  }

  // Adds what was compared between these two states of the judgement.
  void count_again(const Judgement& before, const Judgement& after) {
    judgement_.elements += after.elements - before.elements;
    judgement_.elements_exact += after.elements_exact - before.elements_exact;
    judgement_.elements_bounded += after.elements_bounded - before.elements_bounded;
    judgement_.elements_unbounded += after.elements_unbounded - before.elements_unbounded;
  }

  // What a replay left for the next.
  void carry(std::size_t round) {
    for (std::size_t c = 0; c < scenario_.calls.size(); ++c) put_links(scenario_.calls[c].carried, latest_, rounds_[round][c]);
  }

  std::vector<std::uint64_t> digests(const ScenarioRun& run) const {
    std::vector<std::uint64_t> sums;
    for (std::size_t c = 0; c < run.outputs.size(); ++c) {
      for (const OutputSpec& spec : specs_[c]) sums.push_back(digest(run.outputs[c].at(spec.name)));
    }
    return sums;
  }

  // Compares the bits of a run with those of the replay of the same round: both may be right and still differ.
  bool same(std::size_t round, const ScenarioRun& run, const std::string& when, const std::string& other) {
    const std::vector<std::uint64_t> sums = digests(run);
    std::size_t at = 0;
    for (std::size_t c = 0; c < run.outputs.size(); ++c) {
      for (const OutputSpec& spec : specs_[c]) {
        if (sums[at] != replayed_[round][at] && stated_[c].deterministic != 0) {
          return fail(Verdict::failed, fmt::format("  when    {}\n  output  {}, {}: other bits than in {}, on the same inputs",
                                                   when, scenario_.place(c), spec.name, other));
        }
        ++at;
      }
    }
    return true;
  }

  using Late = ScenarioStage::Late;
  ScenarioRun run(std::size_t round, std::uint8_t poison, bool launched, Late late = Late::no) {
    return launched ? stage_->replay(rounds_[round], poison, late) : stage_->eager(rounds_[round], poison, late);
  }

  // The same round once more, over the other poison: what call `c` gave then, or nothing.
  Outputs again(std::size_t round, std::uint8_t poison, bool launched, std::size_t c) {
    try {
      ScenarioRun repeated = run(round, poison, launched);
      if (repeated.status == ASSAY_OK) return std::move(repeated.outputs[c]);
    } catch (const BackendFault&) {
      throw;
    } catch (const BackendError&) {  // the finding does not depend on this run
    }
    return {};
  }

  bool leave_out(const Expectation& expectation) {
    const std::string plan = judgement_.plan;
    judgement_ = Judgement();
    judgement_.plan = plan;
    put_left_out(expectation, judgement_);
    return false;
  }

  // Every output of every call is what the reference says.
  bool meets(std::size_t round, const ScenarioRun& run, std::uint8_t poison, const std::string& when, bool launched) {
    const std::string head = "  when    " + when;
    if (run.status == ASSAY_TIMEOUT) return fail(Verdict::unfinished, fmt::format("{}\n  hang    {}", head, run.error));
    if (run.status != ASSAY_OK) return fail(verdict_of(run.status), fmt::format("{}\n  call    {}", head, run.error));
    std::string text;
    for (const std::string& line : run.damage) text += "  memory  " + line + "\n";
    for (std::size_t c = 0; c < scenario_.calls.size(); ++c) {
      const ScenarioCall& call = scenario_.calls[c];
      Case& problem = rounds_[round][c];
      // Already checked: calls are compared in order.
      put_links(call.chained, run.outputs, problem);
      const std::string linked = options_.predictions == nullptr ? "" : digest_of_links(call, problem);
      Expectation expectation(problem, nullptr, specs_[c], stated_[c], options_for(c), step_of(scenario_, round, c),
                                    linked);
      std::vector<const Case*> earlier;
      for (std::size_t before = 0; before < (round == 0 ? rounds_.size() : round); ++before)
        earlier.push_back(&rounds_[before][c]);
      expectation.after(std::move(earlier));
      judgement_.basis = std::max(judgement_.basis, expectation.basis());
      if (!expectation.expected_by().empty()) judgement_.expected_by = expectation.expected_by();
      if (!expectation.statement_fault().empty())
        return fail(Verdict::failed, "  stated  " + scenario_.place(c) + ": " + expectation.statement_fault());
      if (expectation.is_left_out()) return leave_out(expectation);
      expectation.count_elements(judgement_);
      const bool right = expectation.holds(run.outputs[c], poison);
      judgement_.predicted = std::max(judgement_.predicted, expectation.predicted());
      if (right) continue;
      const std::uint8_t other_poison = poison == kPoisons[0] ? kPoisons[1] : kPoisons[0];
      const Outputs repeated = again(round, other_poison, launched, c);
      const OtherPoison other{&repeated, other_poison};
      const std::string differences =
          expectation.differences(run.outputs[c], poison, nullptr, &judgement_.findings, repeated.empty() ? nullptr : &other);
      if (options_for(c).keeps_got) judgement_.kept = expectation.kept(run.outputs[c], poison, scenario_.place(c), judgement_);
      for (Finding& each : judgement_.findings) each.when = when + ", " + scenario_.place(c);
      return fail(Verdict::failed,
                  fmt::format("{}, {}\n  call    {}\n{}{}", head, scenario_.place(c), to_text(call.line), text, differences));
    }
    return text.empty() || fail(Verdict::failed, head + "\n" + text);
  }

  Backend& backend_;
  const CaseLine& line_;
  const JudgeOptions& options_;
  const Scenario scenario_;
  std::vector<std::vector<Case>> rounds_;  // inputs of every call
  std::vector<std::vector<OutputSpec>> specs_;
  std::unique_ptr<ScenarioStage> stage_;
  std::vector<assay_numerics> stated_;
  std::vector<std::vector<std::uint64_t>> replayed_;                   // digests of every output in every replay
  std::vector<std::map<std::string, std::vector<std::byte>>> latest_;  // outputs of the replay before
  Judgement judgement_;
};

}  // namespace

Judgement judge_scenario(Backend& backend, const CaseLine& line, const JudgeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Judgement judgement = ScenarioJudge(backend, line, options).judge_all();
  judgement.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return judgement;
}

}  // namespace assay::conformance
