#include "conformance/program/suite.h"

#include <algorithm>

#include "conformance/cases/generator.h"
#include "conformance/cases/replay_steps.h"
#include "conformance/program/fixture_cases.h"
#include "conformance/program/parallel_judging.h"
#include "conformance/program/progress.h"
#include "conformance/program/self_check.h"
#include "reference/support/error.h"

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

}  // namespace

CaseReport judge_line(const CaseLine& line, Backend& backend, const BackendChoice& choice) {
  JudgeOptions options = choice.judge_options();
  options.title = to_text(line);
  options.reproduce = "assay repro " + quoted(to_text(line)) + choice.words();
  CaseReport report{"generated", name_of(line), to_text(line), line.op, recipe_of(line), {}};
  try {
    const std::vector<std::string> wanted = wanted_outputs(line);
    options.wanted = &wanted;
    options.order_free = check_kind(line) == CheckKind::order_free;
    report.judgement = replay_plan(line).count == 0 ? judge(backend, generate(line), nullptr, options)
                                                    : judge_replay(backend, replay_steps(line), options);
  } catch (const InvalidArgument& error) {  // a fault of the suite, not of the backend; it must not pass for anything else
    report.judgement.verdict = Verdict::failed;
    report.judgement.text = options.title + "\n  the reference refuses this case: " + error.what();
  } catch (const NotSupported& error) {
    report.judgement.verdict = Verdict::failed;
    report.judgement.text = options.title + "\n  the reference cannot answer this case: " + error.what();
  } catch (const BackendError& error) {
    report.judgement.verdict = Verdict::machine_failed;
    report.judgement.text = options.title + "\n  " + error.what();
  } catch (const std::bad_alloc&) {
    report.judgement.verdict = Verdict::machine_failed;
    report.judgement.text = options.title + "\n  the harness is out of memory";
  }
  return report;
}

void judge_lines(const std::vector<CaseLine>& lines, const BackendChoice& choice, bool progress, Report& report) {
  Progress line("cases", static_cast<std::int64_t>(lines.size()), progress);
  judge_in_parallel(choice, static_cast<std::int64_t>(lines.size()), [&](std::int64_t i, Backend& backend) {
    CaseReport judged = judge_line(lines[static_cast<std::size_t>(i)], backend, choice);
    line.done(judged.line, counts_as_failed(judged.judgement));
    report.add(std::move(judged));
  });
}

void selection_of_fixtures(const std::vector<std::string>& words, Selection& selection,
                           std::vector<std::filesystem::path>& files, std::vector<std::string>& only) {
  const std::vector<std::filesystem::path> all = golden_files();
  if (words.empty()) {
    files = all;
    return;
  }
  // With words, fixtures take part when a word names a file; the other words then select within it.
  for (const std::filesystem::path& file : all) {
    const std::string stem = file.stem().string();
    if (std::find(words.begin(), words.end(), stem) != words.end() || std::find(words.begin(), words.end(), file.filename().string()) != words.end()) {
      files.push_back(file);
    }
  }
  if (files.empty()) return;
  for (const std::string& word : words) {
    const bool is_file = std::any_of(files.begin(), files.end(), [&](const std::filesystem::path& file) {
      return word == file.stem().string() || word == file.filename().string();
    });
    if (!is_file) only.push_back(word);
  }
  selection.unmatched.clear();
}

void self_check(Report& report, bool progress) {
  const std::vector<CaseLine> lines = catalogue(Profile::smoke);
  BackendChoice null_choice;
  null_choice.name = "null";
  Progress line("self-check", static_cast<std::int64_t>(lines.size()), progress);
  judge_in_parallel(null_choice, static_cast<std::int64_t>(lines.size()), [&](std::int64_t i, Backend& backend) {
    CaseReport judged = judge_line(lines[static_cast<std::size_t>(i)], backend, null_choice);
    CaseReport entry{"self-check", judged.name, judged.line, "self-check", "null", {}};
    entry.judgement.seconds = judged.judgement.seconds;
    // What has nothing to write cannot be told from a backend that does nothing, and says so by comparing no words.
    const bool right = judged.judgement.verdict == Verdict::failed || (judged.judgement.verdict == Verdict::passed && judged.judgement.words == 0);
    entry.judgement.verdict = right ? Verdict::passed : Verdict::failed;
    if (!right) {
      entry.judgement.text = judged.line + "\n  self-check: a backend that writes nothing was judged '" +
                             std::string(name_of(judged.judgement.verdict)) + "' here; it must fail";
    }
    line.done(judged.line, !right);
    report.add(std::move(entry));
  });
}

}  // namespace assay::conformance
