#include "conformance/suites/journal_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include <nlohmann/json.hpp>

#include "conformance/suites/backend_choice.h"
#include "conformance/suites/shards.h"
#include "conformance/support/interrupt.h"

namespace assay::conformance {
namespace {

// A block takes half a second of one core, as predicted; there are no more than a folder lists quickly.
constexpr double kWorkOfBlock = 2e8;
constexpr std::int64_t kMaxBlocks = 4096;

// Appends for as long as this worker has the block.
class LeasedFile : public ResultsFile {
 public:
  LeasedFile(Journal& journal, const Journal::Lease& lease, std::atomic<std::int64_t>& lost)
      : ResultsFile(lease.path, true), journal_(journal), lease_(lease), lost_(lost) {}
  void append(const std::vector<nlohmann::json>& entries) override {
    if (lost_ > 0 || !journal_.holds(lease_)) {
      ++lost_;  // another worker does the case, or has done it
    } else {
      ResultsFile::append(entries);
    }
  }

 private:
  Journal& journal_;
  const Journal::Lease& lease_;
  std::atomic<std::int64_t>& lost_;
};

}  // namespace

std::int64_t blocks_of_cases(const std::vector<CaseLine>& cases, std::int64_t asked) {
  double work = 0;
  for (const CaseLine& each : cases) work += work_of(each);
  const std::int64_t blocks = asked > 0 ? asked : std::min(kMaxBlocks, static_cast<std::int64_t>(work / kWorkOfBlock) + 1);
  return std::min(blocks, static_cast<std::int64_t>(cases.size()));
}

std::int64_t JournalWorker::work() {
  std::int64_t finished = 0;
  while (const std::optional<Journal::Lease> lease = journal_.take()) {
    begin(lease->earlier);
    std::atomic<std::int64_t> missed = 0;
    const bool whole = do_block(lease->block, std::make_unique<LeasedFile>(journal_, *lease, missed));
    if (interrupted()) break;
    if (missed > 0) {
      lost(lease->block, missed);
      continue;
    }
    if (!whole) break;  // a machine that cannot do a block must not take those of machines that can
    journal_.finish(*lease);
    ++finished;
  }
  return finished;
}

std::string worker_text(const Journal& journal, const std::string& folder, std::int64_t finished, const std::string& what) {
  return fmt::format("worker {}: {} of {} blocks; assay merge {} joins the {} of all workers", journal.worker(), finished,
                     journal.settings().blocks, quoted(folder), what);
}

std::string given_up_text(std::int64_t block) {
  return fmt::format("block {} is given up: {} workers in a row ended in it, and recorded nothing", block, Journal::kMaxTries);
}

}  // namespace assay::conformance
