#pragma once
// A folder in which several processes, on one machine or many, share the blocks of a run. Nothing in it is overwritten. A run of `predict`
// has predictions in place of verdicts.
//
//   run.json              what is run: the header, the number of blocks, the time after which a lease expires
//   worker-ID             a worker: where it runs, then a byte for each sign of life
//   block-000017.1.jsonl  the first lease of block 17, and its verdicts as they fall
//   block-000017.2.jsonl  the second one: the worker of the first one has died, or it gave the block back
//   block-000017.done     every case of the block has its verdict
//
// A lease is a file that did not exist before, and the worker that made it is the only one that writes to it. A lease has expired
// when its worker has ended or died. On the same machine the process table says that; of other machines, that its file has not
// grown for the time of a lease. That time is measured by the observer alone, so clocks of machines need not agree.
//
// The file system must offer: link(2), or open(2) with O_CREAT | O_EXCL, that fails on all machines but one where several make
// one name at the same time; close-to-open consistency, so that a file opened after another machine has called fsync(2) has that
// content; names that other machines made in a listing, soon. Local file systems, NFS 3 and 4, Lustre, GPFS, CephFS and BeeGFS do.
// Appending needs no lock and no atomic O_APPEND: no two processes write to one file.

#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace assay::conformance {

struct JournalSettings {
  std::int64_t blocks = 0;
  double lease_s = 60;
};

class Journal {
 public:
  struct Lease {
    std::int64_t block = 0, generation = 1;
    std::string path;                  // of its verdicts
    std::vector<std::string> earlier;  // files of the leases before it
  };

  // Begins the journal of a run in `folder`, or joins the one that is there; `settings` are then those of the journal.
  // Errors: golden::OutputError where it cannot be written; golden::FixtureError where the folder holds the journal of another
  // run, whose first difference is named, or no journal at all, but other files.
  Journal(std::string folder, const nlohmann::json& header, JournalSettings settings);
  // Ends the worker: its leases have expired then.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& worker() const { return worker_; }
  const JournalSettings& settings() const { return settings_; }

  // A block for this worker to judge. Waits while all blocks without an end are leased by workers that live. Nothing: all blocks
  // are done or given up, or the run was interrupted.
  std::optional<Lease> take();
  // Whether no other worker has leased the block since.
  bool holds(const Lease& lease);
  // Every case of the block has a verdict in the files of its leases.
  void finish(const Lease& lease);

  // Blocks that no worker leases any more: the last `kMaxTries` leases brought no verdict.
  std::vector<std::int64_t> given_up() const { return {given_up_.begin(), given_up_.end()}; }
  static constexpr std::int64_t kMaxTries = 5;

 private:
  struct Seen {
    std::int64_t bytes = -1;
    std::chrono::steady_clock::time_point since;
  };
  struct State {
    std::int64_t generation = 0;  // of the last lease; 0: none
    bool done = false;
  };

  void join(const nlohmann::json& header);
  void register_worker();
  void beat();
  void scan();
  std::string block_path(std::int64_t block, std::int64_t generation) const;
  std::string done_path(std::int64_t block) const;
  bool create(const std::string& path, const std::string& text);
  std::optional<Lease> lease(std::int64_t block, std::int64_t generation);
  bool has_expired(std::int64_t block, std::int64_t generation);
  bool is_dead(const std::string& worker, const std::string& seen_as);
  bool brought_nothing(std::int64_t block, std::int64_t generation) const;

  std::string folder_, worker_;
  nlohmann::json header_;
  JournalSettings settings_;
  std::vector<State> blocks_;
  std::size_t first_ = 0;  // where this worker begins to look
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> owners_;
  std::map<std::string, Seen> seen_;
  std::set<std::int64_t> given_up_;

  int beats_ = -1;  // the worker's own file
  std::chrono::steady_clock::time_point checked_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread beating_;
};

// The files of leases in a journal, sorted, and whether every block is done. Errors: golden::FixtureError for a folder that is no
// journal.
struct JournalFiles {
  std::vector<std::string> leases;
  std::int64_t blocks = 0, done = 0;
};
JournalFiles journal_files(const std::string& folder);

}  // namespace assay::conformance
