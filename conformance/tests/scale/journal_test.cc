// Workers that share a journal: killed at random, nothing is lost and nothing is judged twice.

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "conformance/suites/journal.h"
#include "conformance/tests/program/evidence.h"
#include "conformance/tests/scale/workers.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {
namespace {

json header_with(const char* device) {
  return {{"assay", "1"}, {"backend", {{"name", "b"}, {"device", device}}}, {"selection", {{"sha256", "0"}}}};
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder)) names.insert(each.path().filename().string());
  return names;
}

TEST(Journal, GivesEachBlockToOneWorker) {
  const golden::TemporaryFolder folder;
  const std::string path = folder.path().string();
  Journal one(path, header_with("d"), {3, 60}), other(path, header_with("d"), {99, 1});
  EXPECT_EQ(other.settings().blocks, 3) << "the first worker's count";
  EXPECT_EQ(other.settings().lease_s, 60);
  std::set<std::int64_t> blocks;
  for (Journal* worker : {&one, &other, &one}) {
    const std::optional<Journal::Lease> lease = worker->take();
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->generation, 1);
    EXPECT_TRUE(lease->earlier.empty());
    EXPECT_TRUE(worker->holds(*lease));
    EXPECT_TRUE(blocks.insert(lease->block).second) << lease->block << " is leased twice";
    worker->finish(*lease);
  }
  EXPECT_EQ(blocks, (std::set<std::int64_t>{0, 1, 2}));
  EXPECT_FALSE(one.take());
  EXPECT_FALSE(other.take());
  const JournalFiles files = journal_files(path);
  EXPECT_EQ(files.leases.size(), 3u);
  EXPECT_EQ(files.done, 3);
}

TEST(Journal, RefusesAnotherRunAndOtherFolders) {
  const golden::TemporaryFolder folder;
  const Journal one(folder.path().string(), header_with("d"), {3, 60});
  try {
    const Journal other(folder.path().string(), header_with("another"), {3, 60});
    FAIL();
  } catch (const golden::FixtureError& error) {
    EXPECT_TRUE(contains(error.what(), "is the journal of another run: backend/device: \"d\" there, \"another\" here"))
        << error.what();
  }
  const golden::TemporaryFolder full;
  std::ofstream(full / "notes.txt") << "mine\n";
  EXPECT_THROW(Journal(full.path().string(), header_with("d"), {3, 60}), golden::FixtureError);
  EXPECT_EQ(names_in(full.path()), (std::set<std::string>{"notes.txt"}));
}

TEST(Journal, LeasesTheBlockOfAWorkerThatEndedAgain) {
  const golden::TemporaryFolder folder;
  std::string first;
  {
    Journal one(folder.path().string(), header_with("d"), {1, 3600});
    first = one.take()->path;
  }
  Journal other(folder.path().string(), header_with("d"), {1, 3600});
  const std::optional<Journal::Lease> lease = other.take();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->generation, 2);
  EXPECT_EQ(lease->earlier, std::vector<std::string>{first});
}

// A worker of another machine: its file must have grown within the time of a lease.
TEST(Journal, ObservesWorkersOfOtherMachines) {
  const golden::TemporaryFolder folder;
  Journal here(folder.path().string(), header_with("d"), {1, 1});
  std::ofstream(folder / "worker-far") << R"({"boot":"another","processes":"another","pid":1,"start":"1"})"
                                       << "\n";
  json header = header_with("d");
  header["record"] = "header";
  header["journal"] = {{"block", 0}, {"generation", 1}, {"worker", "far"}};
  std::ofstream(folder / "block-000000.1.jsonl") << header.dump() << "\n";
  std::atomic<bool> lives = true;
  std::atomic<int> signs = 0;
  std::thread far([&] {
    for (; lives && signs < 100; ++signs) {
      std::ofstream(folder / "worker-far", std::ios::app) << ".";
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (signs == 20) lives = false;  // it dies after two seconds
    }
  });
  const std::optional<Journal::Lease> lease = here.take();
  far.join();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->generation, 2);
  EXPECT_FALSE(lives) << "it was leased while its worker lived";
}

// A journal is a folder that others write to, too: a value of another type is as good as none.
TEST(Journal, ReadsMembersOfOtherTypesAsMissing) {
  for (const char* const worker : {"7", "\"far\""}) {
    const golden::TemporaryFolder folder;
    Journal here(folder.path().string(), header_with("d"), {1, 0.2});
    const Journal self(folder.path().string(), header_with("d"), {1, 0.2});
    // What can be compared is of this machine, so that the process is looked for.
    json who;
    for (const std::string& name : names_in(folder.path())) {
      if (name.starts_with("worker-")) {
        std::ifstream file(folder / name);
        std::string line;
        std::getline(file, line);
        who = json::parse(line);
      }
    }
    ASSERT_TRUE(who.contains("pid"));
    who["pid"] = "one", who["start"] = 1;
    std::ofstream(folder / "worker-far") << who.dump() << "\n";
    std::ofstream(folder / "block-000000.1.jsonl") << R"({"journal":{"worker":)" << worker << "}}\n";
    const std::optional<Journal::Lease> lease = here.take();
    ASSERT_TRUE(lease) << worker;
    EXPECT_EQ(lease->generation, 2);
  }
  const golden::TemporaryFolder other;
  std::ofstream(other / "run.json") << R"({"record":7,"header":{},"blocks":1,"lease_seconds":1})";
  EXPECT_THROW(Journal(other.path().string(), header_with("d"), {1, 1}), golden::FixtureError);
}

TEST(Journal, NoticesALeaseThatWasTaken) {
  const golden::TemporaryFolder folder;
  Journal one(folder.path().string(), header_with("d"), {1, 1});
  const Journal::Lease lease = *one.take();
  std::ofstream(folder / "block-000000.2.jsonl") << "{}\n";
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(one.holds(lease));
}

TEST(Journal, GivesUpABlockThatEndsItsWorkers) {
  const golden::TemporaryFolder folder;
  const std::string path = folder.path().string();
  for (int i = 0; i < Journal::kMaxTries; ++i) {
    Journal worker(path, header_with("d"), {1, 3600});
    ASSERT_TRUE(worker.take()) << i;
  }
  Journal last(path, header_with("d"), {1, 3600});
  EXPECT_FALSE(last.take());
  EXPECT_EQ(last.given_up(), std::vector<std::int64_t>{0});
}

TEST(JournalRun, NothingIsLostAndNothingTwiceWhereWorkersAreKilled) {
  const golden::TemporaryFolder folder;
  const std::string cases = case_file(folder, 2000), journal = (folder / "journal").string(),
                    whole = (folder / "whole.jsonl").string(), merged = (folder / "merged.jsonl").string();
  const Words run{"run", "--cases", cases, "--backend", "reference", "--quiet"};
  Words one = run, worker = run;
  one.insert(one.end(), {"--results", whole});
  worker.insert(worker.end(), {"--journal", journal, "--blocks", "40"});
  ASSERT_EQ(assay(one).code, 0);

  EXPECT_GE(run_workers(worker, 8, 12), 3);

  const Ran ran = assay({"merge", journal, "-o", merged});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_FALSE(contains(ran.out, "twice")) << ran.out;
  EXPECT_EQ(results_of(merged).back().at("digest"), results_of(whole).back().at("digest"));
  // Counted in the files themselves: each line has one verdict, in one lease.
  std::map<std::string, int> verdicts;
  for (const std::string& path : journal_files(journal).leases) {
    for (const json& each : results_of(path)) {
      if (each.at("record") == "case") ++verdicts[each.at("case")];
    }
  }
  EXPECT_EQ(verdicts.size(), 2000u);
  for (const auto& [line, times] : verdicts) EXPECT_EQ(times, 1) << line;
  EXPECT_EQ(assay({"report", merged, "--check"}).code, 0);
}

TEST(JournalRun, GoesOnWhereTheOnlyWorkerWasInterrupted) {
  const golden::TemporaryFolder folder;
  const std::string cases = case_file(folder, 600), journal = (folder / "journal").string();
  const Words worker{"run", "--cases", cases, "--backend", "reference", "--quiet", "--journal", journal, "--blocks", "4"};
  ProcessOptions options;
  options.environment = {{"ASSAY_THREADS", "1"}};
  options.meanwhile = [&](pid_t child) {
    appears(journal + "/run.json");
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    kill(child, SIGTERM);
  };
  const Ran first = assay(worker, options);
  EXPECT_EQ(first.code, 5) << first.out << first.err;
  const Ran partly = assay({"merge", journal});
  EXPECT_NE(partly.code, 0) << partly.out;
  options.meanwhile = nullptr;
  const Ran second = assay(worker, options);
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_EQ(assay({"merge", journal, "--show", "0"}).code, 0);
  const Ran third = assay(worker, options);
  EXPECT_EQ(third.code, 0) << third.out << third.err;
  EXPECT_TRUE(contains(third.out, "0 cases in this shard (journal ")) << third.out;
}

TEST(JournalRun, JudgesFixturesAndTheSelfCheckToo) {
  const EmptyGolden golden;
  const std::string journal = (golden.folder / "journal").string(), whole = (golden.folder / "whole.jsonl").string();
  const Words run{"run", "--profile", "smoke", "--backend", "reference", "--quiet"};
  Words one = run, worker = run;
  one.insert(one.end(), {"--results", whole});
  worker.insert(worker.end(), {"--journal", journal});
  ASSERT_EQ(assay(one).code, 0);  // with the fixtures of the program
  ASSERT_EQ(assay(worker).code, 0);
  const Ran ran = assay({"merge", journal, "--show", "0"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, results_of(whole).back().at("digest").get<std::string>())) << ran.out;
  EXPECT_TRUE(contains(ran.out, "levels passed: all 1")) << ran.out;
}

TEST(JournalRun, RefusesWhatIsOfOneRunAlone) {
  const golden::TemporaryFolder folder;
  const std::string journal = (folder / "journal").string();
  for (const Words& more :
       {Words{"--shard", "0/2"}, Words{"--results", (folder / "r.jsonl").string()}, Words{"--require", "swizzle"}}) {
    Words words{"run", "swizzle", "--profile", "smoke", "--backend", "reference", "--journal", journal};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = assay(words);
    EXPECT_EQ(ran.code, 2) << more[0] << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, "--journal")) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(journal));
}

}  // namespace
}  // namespace assay::conformance
