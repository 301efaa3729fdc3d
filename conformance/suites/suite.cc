#include "conformance/suites/suite.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/catalogue/case_word.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/judge/calls/content_faults.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/prefetcher.h"
#include "conformance/suites/progress.h"
#include "conformance/suites/retries.h"
#include "conformance/suites/self_check.h"
#include "conformance/suites/shards.h"
#include "golden/io/contained_reader.h"
#include "golden/io/fixture_error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

bool counts_as_failed(const Judgement& judgement) {
  return judgement.verdict != Verdict::passed && judgement.verdict != Verdict::not_run;
}

// Cases of at least this size (products, elements of all tensors) are judged one at a time.
constexpr std::int64_t kLargeProducts = 30'000'000'000, kLargeElements = std::int64_t{1} << 27;

}  // namespace

bool is_large(const CaseLine& line) {
  const CaseCost cost = cost_of(line);
  return cost.macs >= kLargeProducts || cost.elements >= kLargeElements;
}

void judge_lines(const std::vector<CaseLine>& lines, const BackendChoice& choice, const SettingsToTry& settings, bool progress,
                 Report& report) {
  std::vector<const CaseLine*> small, large;
  for (const CaseLine& each : lines) {
    if (!report.has_earlier(kGenerated, to_text(each))) (is_large(each) ? large : small).push_back(&each);
  }
  Progress line("cases", static_cast<std::int64_t>(small.size() + large.size()), progress);
  for (const auto& [part, one_at_a_time] : {std::pair{&small, false}, std::pair{&large, true}}) {
    if (part->empty()) continue;
    const auto line_of = [part = part](std::int64_t i) -> const CaseLine& { return *(*part)[static_cast<std::size_t>(i)]; };
    // Calls of a backend with one context wait for each other: other threads prepare cases meanwhile.
    Statements statements;
    std::optional<Prefetcher<std::unique_ptr<PreparedCase>>> prefetcher;
    if (thread_count() > 1 && !one_at_a_time && !settings.any() && !judges_side_by_side(choice) && choice.devices.size() < 2) {
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
            reports =
                with_retries(judged, choice, [&](Judged with) { return judge_under_settings(each, with, choice, settings); });
          } else {
            const std::unique_ptr<PreparedCase> prepared = prefetcher ? prefetcher->take(i) : nullptr;
            PreparedCase* first = prepared.get();  // of the first try alone
            reports = with_retries(judged, choice, [&](Judged with) {
              return std::vector<CaseReport>{judge_line(each, with, choice, std::exchange(first, nullptr))};
            });
            if (prepared != nullptr && prepared->stated) statements.note(each, *prepared->stated);
          }
          note_device(reports, judged, choice);
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
      for (const Case& each : reader.outline(file).cases) {
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
    if (!report.has_earlier(kSelfCheck, to_text(each))) lines.push_back(each);
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
