#include "conformance/program/run_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>

#include <nlohmann/json.hpp>

#include "conformance/report/earlier_results.h"
#include "conformance/report/judgement_json.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/journal.h"
#include "conformance/suites/self_check.h"
#include "conformance/suites/shards.h"
#include "conformance/suites/suite.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {
namespace {

// A block takes half a second of one core, as predicted; there are no more than a folder lists quickly.
constexpr double kWorkOfBlock = 2e8;
constexpr std::int64_t kMaxBlocks = 4096, kSelfChecksOfBlock = 32;

// Blocks by number: a fixture file each, then generated cases, then parts of the self-check.
struct Blocks {
  std::int64_t fixtures = 0, generated = 0, self_checks = 0;
  std::int64_t total() const { return fixtures + generated + self_checks; }
};

Blocks blocks_of(const RunOptions& options, const RunSelection& selection) {
  Blocks blocks;
  blocks.fixtures = static_cast<std::int64_t>(selection.files.size());
  const auto cases = static_cast<std::int64_t>(selection.chosen.size());
  double work = 0;
  for (const CaseLine& each : selection.chosen) work += work_of(each);
  blocks.generated =
      options.blocks > 0 ? options.blocks : std::min(kMaxBlocks, static_cast<std::int64_t>(work / kWorkOfBlock) + 1);
  blocks.generated = std::min(blocks.generated, cases);
  if (options.whole_catalogue()) {
    const auto lines = static_cast<std::int64_t>(catalogue(Profile::smoke).size());
    blocks.self_checks = (lines + kSelfChecksOfBlock - 1) / kSelfChecksOfBlock;
  }
  return blocks;
}

// Appends verdicts for as long as this worker has the block.
class LeasedResults : public ResultsFile {
 public:
  LeasedResults(Journal& journal, const Journal::Lease& lease, std::atomic<std::int64_t>& lost)
      : ResultsFile(lease.path, true), journal_(journal), lease_(lease), lost_(lost) {}
  void append(const std::vector<nlohmann::json>& entries) override {
    if (lost_ > 0 || !journal_.holds(lease_)) {
      ++lost_;  // another worker judges the case, or has judged it
    } else {
      ResultsFile::append(entries);
    }
  }

 private:
  Journal& journal_;
  const Journal::Lease& lease_;
  std::atomic<std::int64_t>& lost_;
};

// Whether a worker could judge the case; otherwise another one is to try.
bool is_judged(Verdict verdict) { return verdict != Verdict::not_tried && verdict != Verdict::machine_failed; }

class JournalRun {
 public:
  JournalRun(const RunOptions& options, const RunSelection& selection, const SettingsToTry& settings, Report& report,
             Journal& journal)
      : options_(options), selection_(selection), settings_(settings), report_(report), journal_(journal) {
    blocks_ = blocks_of(options, selection);
    blocks_.generated = journal.settings().blocks - blocks_.fixtures - blocks_.self_checks;  // as the first worker divided them
    if (blocks_.generated > 0) lines_ = shards_of(selection.chosen, blocks_.generated);
  }

  // Blocks that this worker has finished.
  std::int64_t judge_all() {
    std::int64_t finished = 0;
    while (const std::optional<Journal::Lease> lease = journal_.take()) {
      if (!judge(*lease)) break;
      ++finished;
    }
    report_.append_to(nullptr, true);
    return finished;
  }

 private:
  // False: this worker cannot go on.
  bool judge(const Journal::Lease& lease) {
    std::atomic<std::int64_t> lost = 0;
    for (const std::string& path : lease.earlier) skip_judged(path);
    report_.append_to(std::make_unique<LeasedResults>(journal_, lease, lost), true);
    const std::size_t before = report_.cases().size();
    judge_block(lease.block);
    report_.append_to(nullptr, true);
    if (interrupted()) return false;
    if (lost > 0) {
      report_.note(fmt::format("another worker took block {} over: {} verdicts of this one are not in the journal", lease.block,
                               lost.load()));
      return true;
    }
    const std::vector<CaseReport>& cases = report_.cases();
    const bool whole = std::all_of(cases.begin() + static_cast<std::ptrdiff_t>(before), cases.end(),
                                   [](const CaseReport& each) { return is_judged(each.judgement.verdict); });
    if (whole) journal_.finish(lease);
    return whole;  // a machine that cannot judge must not take the blocks of those that can
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
  Journal& journal_;
  Blocks blocks_;
  std::vector<std::vector<std::size_t>> lines_;
};

}  // namespace

void check_journal_options(const RunOptions& options, const ShardChoice& shard) {
  if (options.journal.empty()) return;
  const auto refuse = [](const char* option, const char* remedy) {
    throw cli::ValidationError("--journal", fmt::format("with {}: {}", option, remedy));
  };
  if (shard.total > 1) refuse("a shard", "workers with a journal divide the cases themselves");
  if (!options.results.empty() || !options.resume.empty())
    refuse("--results or --resume", "the journal holds the verdicts, and assay merge writes them to one file");
  if (!options.require.empty() || !options.baseline.empty())
    refuse("--require or --baseline", "they are of all verdicts: give them to assay merge");
}

void run_with_journal(const RunOptions& options, const RunSelection& selection, const SettingsToTry& settings,
                      const nlohmann::json& header, Report& report) {
  Journal journal(options.journal, header, {blocks_of(options, selection).total(), static_cast<double>(options.lease_s)});
  const std::int64_t finished = JournalRun(options, selection, settings, report, journal).judge_all();
  say("worker {}: {} of {} blocks; assay merge {} joins the verdicts of all workers\n", journal.worker(), finished,
      journal.settings().blocks, quoted(options.journal));
  for (const std::int64_t each : journal.given_up())
    report.note_unfinished(
        fmt::format("block {} is given up: {} workers in a row ended in it without a verdict", each, Journal::kMaxTries));
  if (report.cases().empty()) report.note_empty_shard("journal " + options.journal);
}

}  // namespace assay::conformance
