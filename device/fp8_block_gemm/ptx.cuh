#pragma once
// Instructions of SM90 that CUDA C++ has no function for: barriers in shared memory, the tensor memory accelerator (TMA), and the
// order of warpgroup products. PTX ISA, "mbarrier", "cp.async.bulk.tensor", "wgmma". Internal to this folder.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace assay::device::fp8_block {

using Barrier = std::uint64_t;  // in shared memory
inline constexpr std::uint32_t kNextBarrier = sizeof(Barrier);

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// A value that is the same in all lanes of a warp, which the compiler cannot know: addresses of products are made of it.
__device__ inline std::uint32_t uniform(std::uint32_t value) { return __shfl_sync(0xFFFFFFFFu, value, 0); }

// The same value, of which the compiler knows nothing.
__device__ inline std::uint32_t hidden(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

// --- mbarrier: a phase ends when `count` arrivals and all announced bytes have come; waits name the parity of the phase

__device__ inline void init_barrier(Barrier& barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count) : "memory");
}
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Barriers by their address in shared memory, which the products keep: the compiler would make it anew at each use, from the number
// of the block in its cluster.
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the same barrier of block `rank` of the cluster. It releases to the block (the default), not to the cluster, which costs a fence of
// the whole device: what the arrival reports is that shared memory has been read, and the instructions that write there next wait for
// it.
__device__ inline void arrive_at(std::uint32_t barrier, unsigned rank) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::
          "r"(barrier),
      "r"(rank)
      : "memory");
}
// How many lanes report for their warp. racecheck credits an arrival only to the lane that makes it: in a build with
// ASSAY_EVERY_LANE_ARRIVES every lane arrives.
#if defined(ASSAY_EVERY_LANE_ARRIVES)
inline constexpr unsigned kArrivalsOfWarp = 32;
#else
inline constexpr unsigned kArrivalsOfWarp = 1;
#endif
__device__ inline void arrive_and_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nagain:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @done bra finished;\n"
      " bra again;\nfinished:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// At least so many cycles of the multiprocessor.
__device__ inline void wait_cycles(std::uint32_t cycles) {
  // Unsigned: a block that goes on on another multiprocessor may find an earlier time, and does not wait then.
  for (const long long begin = clock64(); static_cast<unsigned long long>(clock64() - begin) < cycles;) __nanosleep(100);
}

// --- loads that stay where they are written, before the products that follow

__device__ inline float load_word(std::uint32_t from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}
__device__ inline float2 load_two(std::uint32_t from) {
  float2 both;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(both.x), "=f"(both.y) : "r"(from) : "memory");
  return both;
}
__device__ inline float4 load_four(std::uint32_t from) {
  float4 all;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(all.x), "=f"(all.y), "=f"(all.z), "=f"(all.w)
               : "r"(from)
               : "memory");
  return all;
}

// Four matrices of 8x8 codes of 16 bits: lanes 8i to 8i + 7 name the rows of matrix i, of which each lane has pair i, that of row
// lane / 4 and columns 2 (lane % 4). PTX ISA, "stmatrix".
__device__ inline void store_matrices(std::uint16_t* row, const std::uint32_t (&pairs)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(pairs[0]),
               "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

// --- a run of bytes, a multiple of 16, into shared memory; both addresses are multiples of 16

__device__ inline void load_run(void* to, const void* from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
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

__device__ inline void load_box(void* to, const CUtensorMap* map, std::int32_t column, std::int32_t row, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                   shared_address(to)),
               "l"(map), "r"(column), "r"(row), "r"(barrier)
               : "memory");
}
// The same into every block of the cluster that `blocks` has a bit for, at the same address, reported to the same barrier of each.
__device__ inline void load_box_to(unsigned blocks, void* to, const CUtensorMap* map, std::int32_t column, std::int32_t row,
                                   std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], "
      "[%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(static_cast<std::uint16_t>(blocks))
      : "memory");
}

// Between what a thread has written into shared memory and the products that read it, when it reports that they may.
__device__ inline void order_with_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Between what threads write into global memory and what the copy engine reads of it, on both sides.
__device__ inline void order_with_copy_engine() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// --- maps made on the device, in global memory, by one thread: as the host made `from`, but of another matrix

struct MatrixOfBytes {
  const void* first;  // at a multiple of 16 bytes
  std::uint32_t rows, row_bytes;
  std::uint64_t pitch;  // from row to row, a multiple of 16 bytes
};

__device__ inline void make_map(CUtensorMap* map, const CUtensorMap& from, const MatrixOfBytes& matrix) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof from.opaque / sizeof from.opaque[0]); ++i) map->opaque[i] = from.opaque[i];
  asm volatile(
      "tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;\n"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 0, %2;\n"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %3;\n"
      "tensormap.replace.tile.global_stride.global.b1024.b64 [%0], 0, %4;\n"
      // The copy engine reads maps past the caches of threads: what it keeps of an older one is dropped.
      "fence.proxy.tensormap::generic.release.gpu;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map),
      "l"(matrix.first), "r"(matrix.row_bytes), "r"(matrix.rows), "l"(matrix.pitch)
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
