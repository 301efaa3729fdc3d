// Threads that are kept on one processor temporarily.

#include "conformance/worker/cpu_affinity.h"

#include <gtest/gtest.h>

namespace assay::conformance::worker {
namespace {

cpu_set_t mask() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

bool is_same(const cpu_set_t& one, const cpu_set_t& other) { return CPU_EQUAL(&one, &other) != 0; }

TEST(ScopedCpuAffinity, HoldsForAsLongAsItLives) {
  const cpu_set_t before = mask();
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &before)) continue;
    {
      const ScopedCpuAffinity here(processor);
      EXPECT_EQ(sched_getcpu(), processor);
      const cpu_set_t now = mask();
      EXPECT_EQ(CPU_COUNT(&now), 1);
    }
    EXPECT_TRUE(is_same(mask(), before));
  }
}

TEST(ScopedCpuAffinity, WhatCannotBeChangesNothing) {
  const cpu_set_t before = mask();
  int missing = 0;
  while (missing < CPU_SETSIZE - 1 && CPU_ISSET(missing, &before)) ++missing;
  for (const int processor : {-1, missing, CPU_SETSIZE, 1 << 30}) {
    const ScopedCpuAffinity here(processor);
    EXPECT_TRUE(is_same(mask(), before)) << processor;
  }
}

// The thread's former mask is restored, not that of the machine.
TEST(ScopedCpuAffinity, AThreadThatChoseItsProcessorKeepsIt) {
  const cpu_set_t before = mask();
  {
    const ScopedCpuAffinity chosen(sched_getcpu());
    const cpu_set_t mine = mask();
    { const ScopedCpuAffinity here(sched_getcpu()); }
    EXPECT_TRUE(is_same(mask(), mine));
  }
  EXPECT_TRUE(is_same(mask(), before));
}

}  // namespace
}  // namespace assay::conformance::worker
