#pragma once
// A worker of a journal: what `run` and `predict` do alike with the blocks that they lease.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/report/results_file.h"
#include "conformance/suites/journal.h"

namespace assay::conformance {

// How many blocks these cases make: `asked`, or where that is 0 as many as their predicted time suggests; no more than there are cases.
std::int64_t blocks_of_cases(const std::vector<CaseLine>& cases, std::int64_t asked);

class JournalWorker {
 public:
  explicit JournalWorker(Journal& journal) : journal_(journal) {}
  virtual ~JournalWorker() = default;

  // Does blocks until all of them are done or given up, the run is interrupted, or this machine cannot do one. Returns how many blocks this
  // worker has finished. Errors: golden::OutputError.
  std::int64_t work();

 protected:
  // A block begins. What `earlier` files hold, from the leases before this one, is not to be done again.
  virtual void begin(const std::vector<std::string>& earlier) = 0;
  // Does the block; `file` is that of the lease, and takes nothing more once another worker has leased the block. False: this machine cannot do
  // it, and another one is to try.
  virtual bool do_block(std::int64_t block, std::unique_ptr<ResultsFile> file) = 0;
  // Another worker has leased the block, and so many appends of this one are not in the journal.
  virtual void lost(std::int64_t block, std::int64_t appends) = 0;

 private:
  Journal& journal_;
};

// "worker node7-5031-8c1f2a07: 3 of 40 blocks; assay merge FOLDER joins the WHAT of all workers"
std::string worker_text(const Journal& journal, const std::string& folder, std::int64_t finished, const std::string& what);
// "block 17 is given up: 5 workers in a row ended in it, and recorded nothing"
std::string given_up_text(std::int64_t block);

}  // namespace assay::conformance
