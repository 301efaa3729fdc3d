// Items that other threads make ahead of time.

#include "conformance/suites/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

std::unique_ptr<std::int64_t> square(std::int64_t number) { return std::make_unique<std::int64_t>(number * number); }

TEST(Prefetcher, GivesEachNumberItsOwnInAnyOrder) {
  constexpr std::int64_t kCount = 500;
  for (const int threads : {1, 2, 7}) {
    std::atomic<std::int64_t> made = 0;
    Prefetcher<std::unique_ptr<std::int64_t>> prefetcher(kCount, threads,
                                                         [&](std::int64_t number) { return ++made, square(number); });
    for (std::int64_t i = 0; i < kCount; ++i) EXPECT_EQ(*prefetcher.take(i), i * i);
    EXPECT_EQ(made, kCount) << threads << " threads: nothing is made twice";
    EXPECT_EQ(*prefetcher.take(3), 9) << "once more";
  }
}

TEST(Prefetcher, NumbersMayBeLeftOut) {
  Prefetcher<std::unique_ptr<std::int64_t>> prefetcher(1000, 3, square);
  for (std::int64_t i = 0; i < 1000; i += i % 7 + 1) EXPECT_EQ(*prefetcher.take(i), i * i);
  EXPECT_EQ(*prefetcher.take(5), 25);
  EXPECT_EQ(*prefetcher.take(999), 999 * 999);
}

// At most twice as many as there are threads, however long the reader takes.
TEST(Prefetcher, MakesOnlyAFewMore) {
  std::atomic<std::int64_t> begun = 0;
  std::promise<void> all_begun;
  Prefetcher<int> prefetcher(1000, 2, [&](std::int64_t) {
    if (++begun == 4) all_begun.set_value();
    return 0;
  });
  all_begun.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(begun, 4);
}

TEST(Prefetcher, EndsWithWorkThatWasNotTaken) {
  for (int i = 0; i < 100; ++i) {
    Prefetcher<std::unique_ptr<std::int64_t>> prefetcher(100, 4, square);
    if (i % 2 == 0) EXPECT_EQ(*prefetcher.take(i % 3), i % 3 * (i % 3));
  }
}

// Its threads neither wait for the thread pool nor block it.
TEST(Prefetcher, WorksBesideThePool) {
  const auto caller = std::this_thread::get_id();
  std::atomic<std::int64_t> by_others = 0;
  Prefetcher<bool> prefetcher(200, 3, [&](std::int64_t) {
    const auto maker = std::this_thread::get_id();
    std::atomic<bool> inline_only = true;
    parallel_for(20, 1, [&](std::int64_t, std::int64_t) { inline_only = inline_only && std::this_thread::get_id() == maker; });
    by_others += maker != caller;
    return maker == caller || inline_only;
  });
  while (by_others == 0) std::this_thread::yield();
  for (std::int64_t i = 0; i < 200; ++i) EXPECT_TRUE(prefetcher.take(i));
}

}  // namespace
}  // namespace assay::conformance
