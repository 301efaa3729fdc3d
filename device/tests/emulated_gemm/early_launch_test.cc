// A kernel that begins before the work before it has ended: what it finds, and what becomes of what it stores, until a thread waits.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::device::host {
namespace {

constexpr unsigned kThreads = 64, kBlocks = 3;

struct Seen {
  std::vector<std::uint32_t> in, out;
};

// Each thread copies its number, which work before the kernel has written.
Seen copied(bool early, bool waits) {
  Seen seen{{}, std::vector<std::uint32_t>(kBlocks * kThreads)};
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) seen.in.push_back(i);
  in_use_before = {{seen.in.data(), seen.in.size() * 4}, {seen.out.data(), seen.out.size() * 4}};
  Launch launch{{kBlocks, 1, 1}, kThreads};
  launch.early = early;
  run_kernel(launch, [&] {
    if (waits) wait_for_work_before();
    const std::uint32_t at = block_index.x * kThreads + thread_index.x;
    seen.out[at] = seen.in[at] + 1;
  });
  return seen;
}

std::vector<std::uint32_t> numbers_from(std::uint32_t first) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) numbers.push_back(first + i);
  return numbers;
}

TEST(EarlyLaunch, FindsWhatWasWrittenOnceAThreadWaits) {
  const Seen seen = copied(true, true);
  EXPECT_EQ(seen.in, numbers_from(0));
  EXPECT_EQ(seen.out, numbers_from(1));
}

TEST(EarlyLaunch, FindsOtherBytesInEachKernelOfACall) {
  std::uint32_t in = 7, seen[2] = {};
  in_use_before = {{&in, sizeof in}};
  Launch launch{{1, 1, 1}, kThreads};
  launch.early = true;
  for (std::uint32_t& each : seen) run_kernel(launch, [&] { each = in; });
  EXPECT_EQ(seen[0], ~7u);
  EXPECT_EQ(seen[1], ~7u);
  in_use_before.clear();
}

TEST(EarlyLaunch, FindsOtherBytesWithoutTheWait) {
  const Seen seen = copied(true, false);
  EXPECT_EQ(seen.in, numbers_from(0));  // as it was
  for (std::uint32_t i = 0; i < kBlocks * kThreads; ++i) EXPECT_EQ(seen.out[i], ~(~i + 1));
}

TEST(EarlyLaunch, OtherKernelsComeAfterTheWorkBefore) {
  EXPECT_EQ(copied(false, false).out, numbers_from(1));
  in_use_before.clear();
}

}  // namespace
}  // namespace assay::device::host
