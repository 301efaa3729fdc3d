// Blocks of a cluster on the host: barriers of the cluster, and stores into the shared memory of another block.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::device::host {
namespace {

constexpr unsigned kThreads = 64, kCluster = 4, kBlocks = 8;

struct Faults {
  bool early = false;   // stores before all blocks have begun
  bool unseen = false;  // reads before all blocks have stored
  bool beyond = false;  // stores behind the memory of the block
  bool twice = false;   // arrives twice
};

// Each thread stores its number in the grid into the next block of its cluster, and keeps what it finds in its own.
std::vector<std::uint64_t> passed_on(const Faults& faults) {
  std::vector<std::uint64_t> found(kBlocks * kThreads);
  run_kernel({{kBlocks, 1, 1}, kThreads, kThreads * sizeof(std::uint64_t), kCluster}, [&] {
    const auto* const own = static_cast<std::uint64_t*>(dynamic_shared()) + thread_index.x;
    const std::uint64_t number = block_index.x * kThreads + thread_index.x;
    if (!faults.early) arrive_at_cluster(), wait_for_cluster();
    const std::uint32_t place = shared_address(own) + (faults.beyond ? kThreads * 8 : 0);
    store_at_address(address_in_block(place, (block_index.x + 1) % kCluster), &number, sizeof number);
    arrive_at_cluster();
    if (faults.twice) arrive_at_cluster();
    if (faults.unseen) found[number] = *own;
    wait_for_cluster();
    if (!faults.unseen) found[number] = *own;
  });
  return found;
}

std::vector<std::uint64_t> right() {
  std::vector<std::uint64_t> numbers(kBlocks * kThreads);
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    const std::uint64_t before = block / kCluster * kCluster + (block + kCluster - 1) % kCluster;
    for (std::uint64_t t = 0; t < kThreads; ++t) numbers[block * kThreads + t] = before * kThreads + t;
  }
  return numbers;
}

TEST(Clusters, BlocksStoreIntoTheNextOne) {
  for (const bool order : {false, true}) {
    reversed = order;
    EXPECT_EQ(passed_on({}), right());
    EXPECT_NE(passed_on({.unseen = true}), right());
  }
  reversed = false;
}

TEST(Clusters, ThreadsThatEndedCountAsArrived) {
  unsigned passed = 0;
  run_kernel({{kCluster, 1, 1}, kThreads, 0, kCluster}, [&] {
    if (block_index.x == 1 || thread_index.x >= 32) return;
    arrive_at_cluster();
    wait_for_cluster();
    ++passed;
  });
  EXPECT_EQ(passed, (kCluster - 1) * 32);
}

TEST(ClustersDeathTest, FaultsEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(passed_on({.early = true}), "memory of a block that has none");
  EXPECT_DEATH(passed_on({.beyond = true}), "beside the shared memory");
  EXPECT_DEATH(passed_on({.twice = true}), "before it waited");
  EXPECT_DEATH(run_kernel({{1, 1, 1}, kThreads, 0, 1}, [] { wait_for_cluster(); }), "did not arrive");
}

}  // namespace
}  // namespace assay::device::host
