// The thread pool: every index once, the same ranges whatever the threads, exceptions, calls within calls, fork.
//
// The number of threads is read once a process, so these tests start processes of their own with ASSAY_THREADS set.

#include "reference/support/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reference/support/float_mode.h"
#include "reference/types/error.h"

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer stops a forked process that starts threads, unless reported otherwise.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace assay {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(std::int64_t count, std::int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// The ranges that the header promises, one after another.
Ranges promised(std::int64_t count, std::int64_t grain) {
  Ranges ranges;
  for (std::int64_t begin = 0; begin < count; begin += grain) ranges.emplace_back(begin, std::min(count, begin + grain));
  return ranges;
}

TEST(ParallelFor, CutsRangesByGrainAlone) {
  for (const std::int64_t count : {0, 1, 2, 7, 64, 1000, 1001}) {
    for (const std::int64_t grain : {1, 2, 3, 64, 999, 5000}) {
      EXPECT_EQ(ranges_of(count, grain), promised(count, grain)) << "count " << count << " grain " << grain;
    }
  }
  EXPECT_EQ(ranges_of(-5, 1), Ranges{});
}

TEST(ParallelFor, CountsNearTheEndOfInt64) {
  EXPECT_EQ(ranges_of(kMost, kMost), (Ranges{{0, kMost}}));
  const std::int64_t half = kMost / 2 + 1;
  EXPECT_EQ(ranges_of(kMost, half), (Ranges{{0, half}, {half, kMost}}));
  EXPECT_EQ(ranges_of(kMost, kMost - 1), (Ranges{{0, kMost - 1}, {kMost - 1, kMost}}));
}

TEST(ParallelFor, AGrainBelowOneIsAnError) {
  for (const std::int64_t grain : {std::int64_t{0}, std::int64_t{-1}, -kMost}) {
    try {
      parallel_for(0, grain, [](std::int64_t, std::int64_t) {});
      ADD_FAILURE() << "grain " << grain << " was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(), "grain is " + std::to_string(grain) + ": expected a value of at least 1");
    }
  }
}

TEST(ParallelFor, AnExceptionComesOutAfterEveryOtherRangeIsDone) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> done = 0;
    try {
      parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin == 37) throw std::runtime_error("range 37");
        ++done;
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "range 37");
    }
    EXPECT_EQ(done, 99);
    EXPECT_EQ(ranges_of(10, 3), promised(10, 3));  // the pool is as good as before
  }
}

TEST(ParallelFor, ACallFromABodyRunsInline) {
  std::atomic<std::int64_t> sum = 0;
  std::atomic<int> elsewhere = 0;
  parallel_for(16, 1, [&](std::int64_t outer, std::int64_t) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(16, 1, [&](std::int64_t inner, std::int64_t) {
      if (std::this_thread::get_id() != here) ++elsewhere;
      sum += outer * 16 + inner;
    });
  });
  EXPECT_EQ(sum, 256 * 255 / 2);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ParallelFor, AnExceptionFromACallWithinACall) {
  EXPECT_THROW(parallel_for(8, 1,
                            [](std::int64_t, std::int64_t) {
                              parallel_for(8, 1, [](std::int64_t, std::int64_t) { throw std::out_of_range("inner"); });
                            }),
               std::out_of_range);
  EXPECT_EQ(ranges_of(10, 3), promised(10, 3));
}

TEST(ParallelFor, CallersFromManyThreads) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        if (ranges_of(97, 5) != promised(97, 5)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Runs `body` in a process of its own and returns its exit status; a process that hangs is ended and gives -1.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 111;
    try {
      status = body();
    } catch (...) {}
    _exit(status);
  }
  for (int waited = 0; waited < 2000; ++waited) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

TEST(ParallelFor, AForkedProcessHasAPoolOfItsOwn) {
  EXPECT_EQ(ranges_of(100, 1), promised(100, 1));  // the parent's pool exists
  EXPECT_EQ(status_of_child([] { return ranges_of(100, 1) == promised(100, 1) ? 42 : 1; }), 42);
  EXPECT_EQ(ranges_of(100, 1), promised(100, 1));
}

// This program again, with ASSAY_THREADS set, running one of the tests below that are meant for it. A test that passes
// there ends the process with 42, so that a name that matches none is no success.
int status_with_threads(const char* threads, const char* test) {
  return status_of_child([&] {
    setenv("ASSAY_THREADS", threads, 1);
    setenv("ASSAY_TEST_CHILD", "1", 1);
    const std::string filter = std::string("--gtest_filter=") + test;
    execl("/proc/self/exe", "support_test", filter.c_str(), "--gtest_brief=1", static_cast<char*>(nullptr));
    return 112;
  });
}

bool is_child() { return std::getenv("ASSAY_TEST_CHILD") != nullptr; }
void finish_child() { _exit(testing::Test::HasFailure() ? 1 : 42); }

// A sum of floats whose order matters, by ranges: equal for every number of threads because the ranges are.
std::uint64_t digest() {
  constexpr std::int64_t kCount = 100'000, kGrain = 777;
  std::vector<float> partial((kCount + kGrain - 1) / kGrain);
  parallel_for(kCount, kGrain, [&](std::int64_t begin, std::int64_t end) {
    float sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += 1.0f / static_cast<float>(i + 1);
    partial[begin / kGrain] = sum;
  });
  float sum = 0;
  for (const float value : partial) sum += value;
  return static_cast<std::uint64_t>(static_cast<double>(sum) * 0x1p30);
}

TEST(ParallelThreads, ResultsDoNotDependOnTheirNumber) {
  if (is_child()) {
    EXPECT_EQ(digest(), std::strtoull(std::getenv("ASSAY_TEST_DIGEST"), nullptr, 10));
    EXPECT_EQ(ranges_of(1001, 3), promised(1001, 3));
    finish_child();
  }
  setenv("ASSAY_TEST_DIGEST", std::to_string(digest()).c_str(), 1);
  for (const char* threads : {"1", "2", "3", "16"}) {
    EXPECT_EQ(status_with_threads(threads, "ParallelThreads.ResultsDoNotDependOnTheirNumber"), 42) << threads << " threads";
  }
}

// One thread keeps to the same rule: every other range is done before the exception comes out.
TEST(ParallelThreads, ExceptionsDoNotDependOnTheirNumber) {
  if (is_child()) {
    int done = 0;
    EXPECT_THROW(parallel_for(10, 1,
                              [&](std::int64_t begin, std::int64_t) {
                                if (begin == 3) throw std::runtime_error("range 3");
                                ++done;
                              }),
                 std::runtime_error);
    EXPECT_EQ(done, 9);
    const std::int64_t half = kMost / 2 + 1;
    EXPECT_EQ(ranges_of(kMost, half), (Ranges{{0, half}, {half, kMost}}));
    finish_child();
  }
  EXPECT_EQ(status_with_threads("1", "ParallelThreads.ExceptionsDoNotDependOnTheirNumber"), 42);
}

// All of four threads are at work at once: each range waits until the four have met.
TEST(ParallelThreads, AllOfThemWork) {
  if (is_child()) {
    ASSERT_EQ(thread_count(), 4);
    std::atomic<int> met = 0;
    parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
      ++met;
      while (met < 4) std::this_thread::yield();
    });
    EXPECT_EQ(met, 4);
    finish_child();
  }
  EXPECT_EQ(status_with_threads("4", "ParallelThreads.AllOfThemWork"), 42);
}

TEST(ParallelThreads, OneThreadMeansTheCallers) {
  if (is_child()) {
    const std::thread::id here = std::this_thread::get_id();
    std::int64_t next = 0;  // unguarded: everything happens here, in order
    parallel_for(50, 1, [&](std::int64_t begin, std::int64_t) {
      EXPECT_EQ(begin, next++);
      EXPECT_EQ(std::this_thread::get_id(), here);
    });
    EXPECT_EQ(next, 50);
    finish_child();
  }
  EXPECT_EQ(status_with_threads("1", "ParallelThreads.OneThreadMeansTheCallers"), 42);
}

TEST(ParallelThreads, ANumberThatIsNoneIsAnError) {
  if (is_child()) {
    try {
      thread_count();
      ADD_FAILURE() << "taken: " << std::getenv("ASSAY_THREADS");
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.argument(), "ASSAY_THREADS");
      EXPECT_NE(std::string(error.what()).find(": expected a number from 1 to 4096"), std::string::npos) << error.what();
    }
    finish_child();
  }
  for (const char* text : {"0", "-1", "4097", "many", "2x", "99999999999999999999"}) {
    EXPECT_EQ(status_with_threads(text, "ParallelThreads.ANumberThatIsNoneIsAnError"), 42) << text;
  }
}

// Whatever a program has set, bodies compute in the default mode, and the program has its own again afterwards. In a process of
// its own, so that the threads are made under the other mode.
[[noreturn]] void compute_under_another_mode() {
  setenv("ASSAY_THREADS", "4", 1);
  FloatMode other;
#if defined(__x86_64__)
  other.vector = 0xDFC0;  // upward, flush-to-zero, denormals-are-zero
  other.x87 = 0x0B7F;
#elif defined(__aarch64__)
  other.control = std::uint64_t{1} << 24 | std::uint64_t{1} << 22;
#else
  other.rounding = FE_UPWARD;
#endif
  set_float_mode(other);
  std::atomic<int> wrong = 0;
  volatile float tiny = 1e-39f, one = 1, third = 3;
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1000}}) {
    parallel_for(count, 1, [&](std::int64_t, std::int64_t) {
      wrong += current_float_mode() != FloatMode{} || !(tiny * one > 0) || -one / third != -0x1.555556p-2f;
    });
  }
  wrong += current_float_mode() != other;
  std::_Exit(wrong == 0 ? 0 : 1);
}

TEST(ParallelFor, BeginsNoRangeOnceItIsCancelled) {
  std::atomic<bool> flag = false;
  std::atomic<int> begun = 0;
  const auto work = [&] {
    parallel_for(1'000'000, 1, [&](std::int64_t, std::int64_t) {
      if (++begun == 100) flag = true;
    });
  };
  {
    const CancelledBy cancelled(flag);
    EXPECT_THROW(work(), Cancelled);
    EXPECT_LT(begun, 100 + 4096);  // every thread ends with the range that it is in
    EXPECT_THROW(work(), Cancelled);
  }
  begun = 101;
  work();  // other callers, and this one afterwards, are not concerned
  EXPECT_EQ(begun, 1'000'101);
}

TEST(Parallel, BodiesRunInTheDefaultMode) { EXPECT_EXIT(compute_under_another_mode(), testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace assay
