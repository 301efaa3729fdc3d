#include "conformance/suites/suite.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/calls/contract.h"
#include "conformance/judge/calls/faulty_contents.h"
#include "conformance/judge/calls/scenario.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/prefetcher.h"
#include "conformance/suites/progress.h"
#include "conformance/suites/self_check.h"
#include "conformance/suites/shards.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"
#include "reference/support/parallel.h"
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

bool counts_as_failed(const Judgement& judgement) {
  return judgement.verdict != Verdict::passed && judgement.verdict != Verdict::not_run;
}

// Cases of at least this size (products, elements of all tensors) are judged one at a time.
constexpr std::int64_t kLargeProducts = 30'000'000'000, kLargeElements = std::int64_t{1} << 27;

bool is_large(const CaseLine& line) {
  const CaseCost cost = cost_of(line);
  return cost.macs >= kLargeProducts || cost.elements >= kLargeElements;
}

// What determines the kernel and the plan of a product: "fp8_block 1x128 TN f32".
std::string variety_of(const CaseLine& line) {
  if (line.op != "grouped_gemm") return "";
  std::string text = line.text("kind");
  if (text == "fp8_block" && line.text("layout") != "NT") text += " " + line.text("weight_block");
  if (text == "fp8_per_tensor") text += line.integer("split_accumulator") == 1 ? " split" : " fast";
  return text + " " + line.text("layout") + " " + line.text("d_type");
}

// Small enough to be computed by one thread while the backend is busy with other cases.
constexpr std::int64_t kSmallProducts = std::int64_t{1} << 27, kSmallElements = std::int64_t{1} << 21;
constexpr int kFewReplays = 16;

bool can_be_prepared(const CaseLine& line, const BackendChoice& choice) {
  if (line.op == "scenario" || line.integer("contract") == 1 || !fault_word(line).empty() || !choice.expect_by.empty())
    return false;
  const CaseCost cost = cost_of(line);
  return cost.macs <= kSmallProducts && cost.elements <= kSmallElements && replay_plan(line).count <= kFewReplays;
}

// The last statement of a backend for each kind of case.
class Statements {
 public:
  std::optional<assay_numerics> of(const CaseLine& line) {
    const std::lock_guard lock(mutex_);
    const auto found = stated_.find(kind_of(line));
    return found == stated_.end() ? std::nullopt : std::optional(found->second);
  }
  void note(const CaseLine& line, const assay_numerics& stated) {
    const std::lock_guard lock(mutex_);
    stated_[kind_of(line)] = stated;
  }

 private:
  static std::string kind_of(const CaseLine& line) { return line.op + " " + recipe_of(line) + " " + variety_of(line); }
  std::mutex mutex_;
  std::map<std::string, assay_numerics> stated_;
};

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
  options.reproduce = command_name() + " repro " + quoted(to_text(line)) + choice.words();
  options.wanted = &wanted;
  options.order_free = check_kind(line) == CheckKind::order_free;
  options.unit_probes = is_unit_probe(line);
  return options;
}

CaseReport report_for(const CaseLine& line) {
  CaseReport report{kGenerated, name_of(line), to_text(line), line.op, recipe_of(line), {}};
  report.variety = variety_of(line);
  return report;
}

// Another context, in another process, for the rest of a case; null if there is none. `other` owns it.
Backend* restarted(const BackendChoice& choice, std::unique_ptr<Backend>& other) {
  try {
    other.reset();
    other = choice.open();
    other->begin_case();
  } catch (const BackendError&) {  // the next case finds the same, and reports it
    other.reset();
  }
  return other.get();
}

// The case once for each setting; replayed cases are judged with the backend's own choice alone.
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
        [&] { return restarted(choice, other); }};
    for (JudgedSetting& each :
         judge_settings(judged.backend, problem, settings.all_algorithms, settings.axes, options, &recovery)) {
      CaseReport made = report_for(line);
      made.setting = each.setting.text;
      made.judgement = std::move(each.judgement);
      reports.push_back(std::move(made));
    }
    if (other != nullptr) other->close();
  });
  if (reports.empty() || !report.judgement.text.empty()) reports.push_back(std::move(report));  // a fault of the case as a whole
  return reports;
}

Judgement judge_with_faults(Backend& backend, const CaseLine& line, const JudgeOptions& options) {
  const Case problem = generate(line);
  return judge_faulty_contents(backend, problem, content_faults(line, problem), options);
}

}  // namespace

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
  return report;
}

namespace {

// Null where judging the case reports the same again, such as a failure.
std::unique_ptr<PreparedCase> prepare(const CaseLine& line, const BackendChoice& choice, Statements& statements) {
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

}  // namespace

void judge_lines(const std::vector<CaseLine>& lines, const BackendChoice& choice, const SettingsToTry& settings, bool progress,
                 Report& report) {
  std::vector<const CaseLine*> small, large;
  for (const CaseLine& each : lines) {
    if (!report.has_earlier(kGenerated, name_of(each))) (is_large(each) ? large : small).push_back(&each);
  }
  Progress line("cases", static_cast<std::int64_t>(small.size() + large.size()), progress);
  for (const auto& [part, one_at_a_time] : {std::pair{&small, false}, std::pair{&large, true}}) {
    if (part->empty()) continue;
    const auto line_of = [part = part](std::int64_t i) -> const CaseLine& { return *(*part)[static_cast<std::size_t>(i)]; };
    // Calls of a backend with one context wait for each other: other threads prepare cases meanwhile.
    Statements statements;
    std::optional<Prefetcher<std::unique_ptr<PreparedCase>>> prefetcher;
    if (thread_count() > 1 && !one_at_a_time && !settings.any() && !judges_side_by_side(choice)) {
      prefetcher.emplace(static_cast<std::int64_t>(part->size()), thread_count() - 1,
                         [&](std::int64_t i) { return prepare(line_of(i), choice, statements); });
    }
    judge_in_parallel(
        choice, static_cast<std::int64_t>(part->size()),
        [&](std::int64_t i, Judged judged) {
          const CaseLine& each = line_of(i);
          std::vector<CaseReport> reports;
          if (settings.any() && replay_plan(each).count == 0 && fault_word(each).empty() &&
              (each.op == "scenario" || each.integer("contract") == 0)) {
            reports = judge_under_settings(each, judged, choice, settings);
          } else {
            const std::unique_ptr<PreparedCase> prepared = prefetcher ? prefetcher->take(i) : nullptr;
            reports.push_back(judge_line(each, judged, choice, prepared.get()));
            if (prepared != nullptr && prepared->stated) statements.note(each, *prepared->stated);
          }
          line.done(reports[0].line, std::any_of(reports.begin(), reports.end(),
                                                 [](const CaseReport& made) { return counts_as_failed(made.judgement); }));
          const bool finished = std::none_of(reports.begin(), reports.end(), [](const CaseReport& made) {
            return made.judgement.verdict == Verdict::unfinished;
          });
          const Verdict verdict = finished ? reports[0].judgement.verdict : Verdict::unfinished;
          report.add(std::move(reports));
          return verdict;
        },
        [&](std::int64_t i, Judgement judgement) {
          CaseReport made = report_for(line_of(i));
          if (judgement.verdict == Verdict::machine_failed) judgement.text = made.line + "\n  " + judgement.text;
          made.judgement = std::move(judgement);
          report.add(std::move(made));
        },
        one_at_a_time);
  }
}

void selection_of_fixtures(const std::vector<std::string>& words, Selection& selection, std::vector<std::filesystem::path>& files,
                           std::vector<std::string>& only) {
  const std::vector<std::filesystem::path> all = golden_files();
  if (words.empty()) {
    files = all;
    return;
  }
  only = words;
  golden::ReadingProcess reader;
  for (const std::filesystem::path& file : all) {
    bool takes_part = false;
    try {
      for (const Case& each : reader.read(file).cases) {
        const std::string path = file.filename().string() + "/" + each.name;
        bool all_match = true;
        for (const std::string& word : words) {
          const bool match = matches(word, each.name, path);
          if (match) std::erase(selection.unmatched, word);
          all_match = all_match && match;
        }
        takes_part = takes_part || all_match;
      }
    } catch (const golden::FixtureError&) {
      takes_part = true;
    }
    if (takes_part) files.push_back(file);
  }
}

void self_check(Report& report, bool progress, std::int64_t index, std::int64_t total) {
  std::vector<CaseLine> lines;
  for (const CaseLine& each : shard(catalogue(Profile::smoke), index, total)) {
    if (!report.has_earlier(kSelfCheck, name_of(each))) lines.push_back(each);
  }
  BackendChoice null_choice;
  null_choice.name = "null";
  null_choice.explains = false;
  Progress line("self-check", static_cast<std::int64_t>(lines.size()), progress);
  judge_in_parallel(
      null_choice, static_cast<std::int64_t>(lines.size()),
      [&](std::int64_t i, Judged null) {
        CaseReport judged = judge_line(lines[static_cast<std::size_t>(i)], null, null_choice);
        CaseReport entry{kSelfCheck, judged.name, judged.line, kSelfCheck, "null", {}};
        entry.judgement.seconds = judged.judgement.seconds;
        // A case without output elements passes on a backend that does nothing too: it compares no elements.
        const bool right = judged.judgement.verdict == Verdict::failed ||
                           (judged.judgement.verdict == Verdict::passed && judged.judgement.elements == 0);
        entry.judgement.verdict = right ? Verdict::passed : Verdict::failed;
        if (!right) {
          entry.judgement.text = judged.line + "\n  self-check: a backend that writes nothing was judged '" +
                                 std::string(name_of(judged.judgement.verdict)) + "' here; it must fail";
        }
        line.done(judged.line, !right);
        report.add(std::move(entry));
        return right ? Verdict::passed : Verdict::failed;
      },
      [](std::int64_t, Judgement) {});  // it is never left
}

}  // namespace assay::conformance
