#pragma once
// Instructions of SM90 that CUDA C++ has no function for: barriers in shared memory, the tensor memory accelerator (TMA), and the
// order of warpgroup products. PTX ISA, "mbarrier", "cp.async.bulk.tensor", "wgmma". Internal to this folder.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace assay::device::fp8_block {

using Barrier = std::uint64_t;  // in shared memory

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A value that is the same in all lanes of a warp, which the compiler cannot know: addresses of products are made of it.
__device__ inline std::uint32_t uniform(std::uint32_t value) { return __shfl_sync(0xFFFFFFFFu, value, 0); }

// --- mbarrier: a phase ends when `count` arrivals and all announced bytes have come; waits name the parity of the phase

__device__ inline void init_barrier(Barrier& barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count) : "memory");
}
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// At the same barrier of block `rank` of the cluster. Without .release.cluster, which costs a fence of the whole device: what
// the arrival reports is that shared memory has been read, and the instructions that write there next wait for it.
__device__ inline void arrive_at(Barrier& barrier, unsigned rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::
          "r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
__device__ inline void arrive_and_expect(Barrier& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}
__device__ inline void wait(Barrier& barrier, std::uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @done bra.uni finished;\n"
      " bra.uni again;\nfinished:\n}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// --- asynchronous copies of 4 bytes to shared memory; the barrier counts an arrival once the earlier copies of the thread are complete

__device__ inline void copy_word(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ inline void arrive_after_copies(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// --- clusters

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}

// --- TMA: a box of the matrix that `map` describes, its first element at (column, row), into shared memory

__device__ inline void load_box(void* to, const CUtensorMap* map, std::int32_t column, std::int32_t row, Barrier& barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                   shared_address(to)),
               "l"(map), "r"(column), "r"(row), "r"(shared_address(&barrier))
               : "memory");
}
// The same into every block of the cluster that `blocks` has a bit for, at the same address, reported to the same barrier of each.
__device__ inline void load_box_to(unsigned blocks, void* to, const CUtensorMap* map, std::int32_t column, std::int32_t row,
                                   Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], "
      "[%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(&barrier)), "h"(static_cast<std::uint16_t>(blocks))
      : "memory");
}

// --- warpgroup products run beside the threads: from fence to commit to wait

__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ inline void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// Keeps the compiler from moving uses of an accumulator across the order above.
template <int kCount>
__device__ inline void hold(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

template <int kRegisters>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace assay::device::fp8_block
