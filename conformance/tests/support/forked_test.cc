// Forked processes: what they share, how they end, what they may take.

#include "conformance/support/forked.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>

namespace assay::conformance {
namespace {

// The signal that ended a child, 0 for none.
int signal_of(int child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Forked, MemoryIsShared) {
  struct Numbered {
    int number = 7;
  };
  const ForkedArray<int> zeros(1000);
  const ForkedArray<Numbered> numbered(3);
  EXPECT_EQ(std::set<int>(zeros.begin(), zeros.end()), std::set<int>{0});
  EXPECT_EQ(numbered[2].number, 7);
  const int child = make_child(0);
  if (child == 0) {
    zeros[999] = 5;
    numbered[0].number = static_cast<int>(getpid());
    _exit(0);
  }
  EXPECT_TRUE(ended_well(child));
  EXPECT_EQ(zeros[999], 5);
  EXPECT_EQ(numbered[0].number, child);
}

TEST(Forked, EveryNumberIsWorkedOnOnce) {
  constexpr int kCount = 500;
  const ForkedArray<std::atomic<int>> times(kCount);
  const ForkedArray<int> worker(kCount);
  const ForkedArray<std::atomic<std::int64_t>> told(1);
  EXPECT_TRUE(in_processes(
      kCount, 3,
      [&](std::int64_t i) {
        ++times[static_cast<std::size_t>(i)];
        worker[static_cast<std::size_t>(i)] = getpid();
        usleep(200);
      },
      [&](std::int64_t done) { told[0] = done; }));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(times[static_cast<std::size_t>(i)], 1) << i;
  const std::set<int> workers(worker.begin(), worker.end());
  EXPECT_EQ(workers.size(), 3u);
  EXPECT_EQ(workers.count(getpid()), 0u);
  EXPECT_EQ(told[0], kCount);
  EXPECT_TRUE(in_processes(
      0, 3, [](std::int64_t) { _exit(1); }, nullptr));
}

TEST(Forked, AWorkerThatEndsEarlyIsAnError) {
  const auto run = [](const std::function<void(std::int64_t)>& work) { in_processes(10, 2, work, nullptr); };
  EXPECT_THROW(run([](std::int64_t i) { i == 4 ? raise(SIGKILL) : 0; }), ProcessError);
  EXPECT_THROW(run([](std::int64_t i) { i == 4 ? _exit(3) : static_cast<void>(0); }), ProcessError);
  EXPECT_THROW(run([](std::int64_t i) { i == 4 ? throw 1 : 0; }), ProcessError);
}

TEST(Forked, HowAChildEnds) {
  for (const int code : {0, 1, 77}) {
    const int child = make_child(0);
    if (child == 0) _exit(code);
    EXPECT_EQ(ended_well(child), code == 0) << code;
  }
  const int killed = make_child(0);
  if (killed == 0) raise(SIGSEGV), _exit(0);
  EXPECT_FALSE(ended_well(killed));
  EXPECT_FALSE(ended_well(killed)) << "it has been waited for";
  const int child = make_child(0);  // the parent handles these signals
  if (child == 0) {
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) raise(each);
    rlimit core{};
    getrlimit(RLIMIT_CORE, &core);
    _exit(core.rlim_cur == 0 ? 0 : 1);
  }
  EXPECT_TRUE(ended_well(child));
}

TEST(Forked, TimeOfTheProcessorIsLimited) {
  const int busy = make_child(0);
  if (busy == 0) {
    limit_time(0.05);
    while (processor_seconds() >= 0) {
    }
  }
  EXPECT_EQ(signal_of(busy), SIGPROF);
  const int idle = make_child(0);
  if (idle == 0) {
    limit_time(0.05);
    usleep(150'000);
    limit_time(0);
    const double begun = processor_seconds();
    while (processor_seconds() - begun < 0.1) {}
    _exit(0);
  }
  EXPECT_TRUE(ended_well(idle));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Forked, MemoryIsLimited) {
  const auto takes = [](std::size_t bytes) {
    const int child = make_child(std::size_t{64} << 20);
    if (child != 0) return ended_well(child);
    void* const memory = std::malloc(bytes);
    if (memory != nullptr) std::memset(memory, 1, bytes);
    _exit(memory == nullptr ? 1 : 0);
  };
  EXPECT_TRUE(takes(std::size_t{16} << 20));
  EXPECT_FALSE(takes(std::size_t{256} << 20));
}
#endif

TEST(Forked, WhatIsSharedCanBeMadeReadOnly) {
  const ForkedArray<int> first(10);
  auto gone = std::make_unique<ForkedArray<int>>(10);
  const ForkedArray<int> last(10);
  gone.reset();
  for (const ForkedArray<int>* const array : {&first, &last}) {
    const int child = make_child(0);
    if (child == 0) {
      signal(SIGSEGV, SIG_DFL);
      ForkedMemory::make_all_read_only();
      if ((*array)[3] != 0) _exit(1);
      (*array)[3] = 1;
      _exit(0);
    }
    EXPECT_EQ(signal_of(child), SIGSEGV);
    EXPECT_EQ((*array)[3], 0);
  }
  first[3] = 2;  // in this process as before
  EXPECT_EQ(first[3], 2);
}

}  // namespace
}  // namespace assay::conformance
