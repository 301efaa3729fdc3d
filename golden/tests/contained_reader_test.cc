// The reading process: whatever happens to it, the caller gets one clear line.

#include "golden/io/contained_reader.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "golden/io/writer.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/temporary_folder.h"
#include "reference/support/parallel.h"
#include "reference/support/sanitized.h"

namespace assay::golden {
namespace {

class ContainedReaderTest : public ::testing::Test {
 protected:
  ContainedReaderTest() { write_fixture(path_, small_fixture()); }

  std::string error_of(ReadingProcess& process) const {
    try {
      process.read(path_);
      return "nothing was thrown";
    } catch (const FixtureError& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.h5";
};

TEST_F(ContainedReaderTest, ReadsManyFilesInOneProcess) {
  ReadingProcess process;
  EXPECT_EQ(process.child(), -1);
  EXPECT_TRUE(same_fixture(process.read(path_), small_fixture()));
  const pid_t child = process.child();
  EXPECT_GT(child, 0);
  write_fixture(folder_ / "b.h5", sample_fixture());
  EXPECT_TRUE(same_fixture(process.read(folder_ / "b.h5"), sample_fixture()));
  EXPECT_EQ(process.child(), child);
}

TEST_F(ContainedReaderTest, OutlinesCasesWithoutTheirTensors) {
  write_fixture(path_, sample_fixture());
  ReadingProcess process;
  Fixture expected = process.read(path_);
  for (Case& each : expected.cases) each.in.clear(), each.out.clear();
  EXPECT_TRUE(same_fixture(process.outline(path_), expected));
  EXPECT_TRUE(same_fixture(process.read(path_), sample_fixture())) << "the outline leaves nothing behind";
}

TEST_F(ContainedReaderTest, PassesErrorsOnWithFileObjectAndReason) {
  ReadingProcess process;
  for (int i = 0; i < 3; ++i) {
    try {
      process.read(folder_ / "none.h5");
      FAIL() << "nothing was thrown";
    } catch (const FixtureError& error) {
      EXPECT_EQ(error.file(), (folder_ / "none.h5").string());
      EXPECT_EQ(error.object(), "");
      EXPECT_EQ(error.reason(), "no such file");
    }
  }
  EXPECT_TRUE(same_fixture(process.read(path_), small_fixture()));
}

TEST_F(ContainedReaderTest, ReportsACrashAndStartsAnew) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) {
    ReadingProcess process;
    process.read(path_);
    ASSERT_GT(process.child(), 0);
    kill(process.child(), signal);
    const std::string message = error_of(process);
    // A sanitizer's handler turns the signal into an exit.
    const std::string crash =
        path_.string() + ": libhdf5 crashed on this file (signal " + std::to_string(signal) + "): the file is damaged";
    const std::string exit = path_.string() + ": libhdf5 ended the reading process (exit status ";
    EXPECT_TRUE(message == crash || message.rfind(exit, 0) == 0) << message;
    EXPECT_EQ(process.child(), -1);
    EXPECT_TRUE(same_fixture(process.read(path_), small_fixture()));
  }
}

// No file can cause this, as the memory of the reading process is bounded: the machine has failed.
TEST_F(ContainedReaderTest, ReportsAKill) {
  ReadingProcess process;
  process.read(path_);
  ASSERT_GT(process.child(), 0);
  kill(process.child(), SIGKILL);
  try {
    process.read(path_);
    FAIL() << "nothing was thrown";
  } catch (const MachineError& error) {
    EXPECT_EQ(error.what(), path_.string() + ": out of memory: the process that read this file was killed (signal 9)");
  }
  EXPECT_TRUE(same_fixture(process.read(path_), small_fixture()));
}

TEST_F(ContainedReaderTest, EndsAProcessThatHangs) {
  ReadingProcess process({.limits = {}, .seconds = 0.3, .log = -1});
  process.read(path_);
  const pid_t child = process.child();
  ASSERT_GT(child, 0);
  kill(child, SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of(process), path_.string() + ": reading it takes longer than 0.3 s: the file is damaged, or too large");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(kill(child, 0), -1) << "the process is still there";
}

TEST_F(ContainedReaderTest, KeepsToItsLimits) {
  ReadingProcess process({.limits = {.bytes = 100}, .seconds = 30, .log = -1});
  EXPECT_EQ(error_of(process), path_.string() +
                                   ": /group/case/out/rowwise_data: brings the tensors of this file to "
                                   "more than the limit of 100 bytes");
}

TEST_F(ContainedReaderTest, WorksFromManyThreads) {
  if (kAddressSanitizer)
    GTEST_SKIP() << "compiled with AddressSanitizer, whose allocator may hang in a child that was forked among threads";
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) right += same_fixture(read_fixture_contained(path_), small_fixture());
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(right, 20);
}

TEST_F(ContainedReaderTest, WorksWhileOtherThreadsReadInThisProcess) {
  if (kAddressSanitizer)
    GTEST_SKIP() << "compiled with AddressSanitizer, whose allocator may hang in a child that was forked among threads";
  std::atomic<bool> done{false};
  std::atomic<int> read_here{0};
  std::thread other([&] {
    while (!done) read_here += same_fixture(read_fixture(path_), small_fixture());
  });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(same_fixture(read_fixture_contained(path_), small_fixture()));
  done = true;
  other.join();
  EXPECT_GT(read_here, 0);
}

TEST_F(ContainedReaderTest, DoesNotDisturbTheThreadPool) {
  std::atomic<std::int64_t> sum{0};
  const auto count = [&] { parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; }); };
  count();
  EXPECT_TRUE(same_fixture(read_fixture_contained(path_), small_fixture()));
  count();
  EXPECT_EQ(sum, 2000);
}

}  // namespace
}  // namespace assay::golden
