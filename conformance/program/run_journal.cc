#include "conformance/program/run_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "conformance/report/earlier_results.h"
#include "conformance/report/judgement_json.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/journal_worker.h"
#include "conformance/suites/self_check.h"
#include "conformance/suites/shards.h"
#include "conformance/suites/suite.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kSelfChecksOfBlock = 32;

// Blocks by number: a fixture file each, then generated cases, then parts of the self-check.
struct Blocks {
  std::int64_t fixtures = 0, generated = 0, self_checks = 0;
  std::int64_t total() const { return fixtures + generated + self_checks; }
};

Blocks blocks_of(const RunOptions& options, const RunSelection& selection) {
  Blocks blocks;
  blocks.fixtures = static_cast<std::int64_t>(selection.files.size());
  blocks.generated = blocks_of_cases(selection.chosen, options.blocks);
  if (options.whole_catalogue()) {
    const auto lines = static_cast<std::int64_t>(catalogue(Profile::smoke).size());
    blocks.self_checks = (lines + kSelfChecksOfBlock - 1) / kSelfChecksOfBlock;
  }
  return blocks;
}

// Whether a worker could judge the case; otherwise another one is to try.
bool is_judged(Verdict verdict) { return verdict != Verdict::not_tried && verdict != Verdict::machine_failed; }

class JournalRun : public JournalWorker {
 public:
  JournalRun(const RunOptions& options, const RunSelection& selection, const SettingsToTry& settings, Report& report,
             Journal& journal)
      : JournalWorker(journal), options_(options), selection_(selection), settings_(settings), report_(report) {
    blocks_ = blocks_of(options, selection);
    blocks_.generated = journal.settings().blocks - blocks_.fixtures - blocks_.self_checks;  // as the first worker divided them
    if (blocks_.generated > 0) lines_ = shards_of(selection.chosen, blocks_.generated);
  }

 private:
  void begin(const std::vector<std::string>& earlier) override {
    for (const std::string& path : earlier) skip_judged(path);
  }

  bool do_block(std::int64_t block, std::unique_ptr<ResultsFile> file) override {
    report_.append_to(std::move(file), true);
    const std::size_t before = report_.cases().size();
    judge_block(block);
    report_.append_to(nullptr, true);
    const std::vector<CaseReport>& cases = report_.cases();
    return std::all_of(cases.begin() + static_cast<std::ptrdiff_t>(before), cases.end(),
                       [](const CaseReport& each) { return is_judged(each.judgement.verdict); });
  }

  void lost(std::int64_t block, std::int64_t appends) override {
    report_.note(
        fmt::format("another worker took block {} over: {} verdicts of this one are not in the journal", block, appends));
  }

  void judge_block(std::int64_t block) {
    const bool progress = !options_.quiet;
    if (block < blocks_.fixtures) {
      judge_fixtures({selection_.files[static_cast<std::size_t>(block)]}, selection_.fixture_words, options_.backend, progress,
                     report_, FixtureWords::whole_path);
    } else if (block < blocks_.fixtures + blocks_.generated) {
      std::vector<CaseLine> lines;
      for (const std::size_t each : lines_[static_cast<std::size_t>(block - blocks_.fixtures)])
        lines.push_back(selection_.chosen[each]);
      judge_lines(lines, options_.backend, settings_, progress, report_);
    } else {
      self_check(report_, progress, block - blocks_.fixtures - blocks_.generated, blocks_.self_checks);
    }
  }

  // Cases that a worker has judged before it lost the block. An interrupted worker may leave a case unfinished.
  void skip_judged(const std::string& path) {
    EarlierResults earlier;
    try {
      earlier = read_results(path);
    } catch (const golden::FixtureError&) {  // it died before it wrote a line
      return;
    }
    std::map<std::pair<std::string, std::string>, std::pair<std::size_t, std::size_t>> judged;  // lines there, of how many
    for (const nlohmann::json& each : earlier.cases) {
      const Verdict verdict = *verdict_named(each.at("verdict").get<std::string>());
      if (!is_judged(verdict) || verdict == Verdict::unfinished) continue;
      const std::string name = each.at("name");
      auto& [there, of] = judged[{each.at("suite"), each.value("case", name)}];
      ++there;
      of = each.value("of", std::size_t{1});
    }
    for (const auto& [key, lines] : judged) {
      if (lines.first == lines.second) report_.judged_elsewhere(key.first, key.second);
    }
  }

  const RunOptions& options_;
  const RunSelection& selection_;
  const SettingsToTry& settings_;
  Report& report_;
  Blocks blocks_;
  std::vector<std::vector<std::size_t>> lines_;
};

[[noreturn]] void refuse_journal(const char* option, const char* remedy) {
  throw cli::ValidationError("--journal", fmt::format("{}: {}", option, remedy));
}

}  // namespace

void check_journal_shard(const ShardChoice& shard) {
  if (shard.total > 1)
    refuse_journal(fmt::format("with shard {}", shard.text()).c_str(), "workers with a journal divide the cases themselves");
}

void check_journal_options(const RunOptions& options, const ShardChoice& shard) {
  if (options.journal.empty()) return;
  check_journal_shard(shard);
  if (!options.results.empty() || !options.resume.empty())
    refuse_journal("with --results or --resume", "the journal holds the verdicts, and assay merge writes them to one file");
  if (!options.require.empty() || !options.baseline.empty())
    refuse_journal("with --require or --baseline", "they are of all verdicts: give them to assay merge");
}

void run_with_journal(const RunOptions& options, const RunSelection& selection, const SettingsToTry& settings,
                      const nlohmann::json& header, Report& report) {
  Journal journal(options.journal, header, {blocks_of(options, selection).total(), static_cast<double>(options.lease_s)});
  const std::int64_t finished = JournalRun(options, selection, settings, report, journal).work();
  report.append_to(nullptr, true);
  say("{}\n", worker_text(journal, options.journal, finished, "verdicts"));
  for (const std::int64_t each : journal.given_up()) report.note_unfinished(given_up_text(each));
  if (report.cases().empty()) report.note_empty_shard("journal " + options.journal);
}

}  // namespace assay::conformance
