#pragma once
// Ragged contractions whose rows the copy engine cannot read. It wants each row at a multiple of 16 bytes, from its first column on; the
// transposed operands of wgrad have rows of as many bytes as the group has tokens. The blocks of the grid together copy the groups
// that have another number of tokens, with rows 16 bytes apart or a multiple of that, and all wait for one another. Calls that have
// no such group pass by. Boxes that begin between multiples of 16 bytes would need no copy: the engine does not take them.
//
//   group of 20 tokens, in memory          copied
//   |row 0      |row 1      |row 2 ...     |row 0      |.....|row 1      |.....|row 2 ...
//   0           20          40             0                 32                64
//
// Runs of 16 bytes are numbered through all groups, as copies are laid out. Internal to this folder.

#include <cooperative_groups.h>

#include <cstdint>

#include "device/fp8_block_gemm/problem.h"
#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/tiles.cuh"
#include "device/support/unaligned_read.cuh"

namespace assay::device::fp8_block {

__device__ inline bool is_copied(std::uint32_t depth) { return depth % 16 != 0; }

// Where the rows of a group lie for the copy engine: `rows` of them, as long as the group's contraction.
template <class GroupsOf>
__device__ MatrixOfBytes matrix_of(const RaggedOperand& operand, std::uint32_t rows, const GroupsOf& groups, int group) {
  const std::uint32_t depth = groups.rows(group), runs = Blocks<16>::of(depth);
  const std::uint8_t* const first = is_copied(depth) ? operand.copies + std::int64_t{groups.before(1, group)} * 16 * rows
                                                     : operand.data + std::int64_t{groups.first_row(group)} * rows;
  return {first, rows, depth, std::uint64_t{runs} * 16};
}

// All threads of all blocks: their part of the copies of one operand.
template <class GroupsOf>
__device__ void copy_groups(const RaggedOperand& operand, std::uint32_t rows, const GroupsOf& groups, int group_count) {
  constexpr int kInFlight = 4;
  const std::uint32_t all = groups.total(1, group_count) * rows, threads = gridDim.x * blockDim.x;
  for (std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x; first < all; first += kInFlight * threads) {
    uint4 runs[kInFlight];
    bool copied[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const std::uint32_t number = first + i * threads;
      copied[i] = false;
      if (number >= all || number < first) continue;
      const int group = groups.find(1, number / rows, group_count);
      const std::uint32_t depth = groups.rows(group), of_row = Blocks<16>::of(depth);
      copied[i] = is_copied(depth);
      if (!copied[i]) continue;
      const std::uint32_t in_group = number - groups.before(1, group) * rows, row = in_group / of_row;
      const std::uint8_t* const from = operand.data + std::int64_t{groups.first_row(group)} * rows + std::int64_t{row} * depth;
      runs[i] = read_unaligned(reinterpret_cast<const char*>(from), depth, (in_group - row * of_row) * 16);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
      if (copied[i]) reinterpret_cast<uint4*>(operand.copies)[first + i * threads] = runs[i];
  }
}

// All threads of all blocks. False, in all of them: a group has rows that the caller has promised not to have, which block 0 reports.
template <class GroupsOf>
__device__ bool align_groups(const Problem& problem, const GroupsOf& groups) {
  bool any = false;
  for (int group = static_cast<int>(threadIdx.x); group < problem.rows.groups; group += static_cast<int>(blockDim.x))
    any = any || is_copied(groups.rows(group));
  if (__syncthreads_or(any) == 0) return true;  // the same in all blocks
  if (problem.a.copies == nullptr) {
    if (threadIdx.x == 0) group_detail::tell(problem.status, kStatusUnalignedRows);
    return false;
  }
  copy_groups(problem.a, static_cast<std::uint32_t>(problem.m), groups, problem.rows.groups);
  copy_groups(problem.b, static_cast<std::uint32_t>(problem.n), groups, problem.rows.groups);
  order_with_copy_engine();
  cooperative_groups::this_grid().sync();
  order_with_copy_engine();
  return true;
}

}  // namespace assay::device::fp8_block
