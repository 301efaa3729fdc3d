#pragma once
// Ragged contractions whose rows the copy engine cannot read. It wants each row at a multiple of 16 bytes, from its first column on; the
// transposed operands of wgrad have rows of as many bytes as the group has tokens. The blocks of the grid together copy the groups
// whose matrix or whose rows begin elsewhere, with rows 16 bytes apart or a multiple of that, and wait for one another. Calls that
// have no such group pass by, as those whose columns are aligned do (column_layout.h). Boxes that begin between multiples of 16 bytes would
// need no copy: the engine does not take them.
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
#include "device/layout/column_layout.h"
#include "device/support/unaligned_read.cuh"

namespace assay::device::fp8_block {

// Whether a group, of `rows` rows as long as its contraction, is copied.
template <class GroupsOf>
__device__ bool is_copied(const GroupsOf& groups, int group, std::uint32_t rows) {
  return groups.rows(group) % 16 != 0 || groups.first_row(group) * rows % 16 != 0;
}

// Where the rows of a group lie for the copy engine.
template <class GroupsOf>
__device__ MatrixOfBytes matrix_of(const RaggedOperand& operand, std::uint32_t rows, const GroupsOf& groups, int group) {
  const std::uint32_t depth = groups.rows(group), first_row = groups.first_row(group);
  if (operand.aligned) {
    const GroupColumns columns = aligned_columns(static_cast<std::uint32_t>(group), first_row, depth);
    return {operand.data + std::int64_t{columns.before} * rows, rows, depth, columns.pitch};
  }
  const std::uint8_t* const first = is_copied(groups, group, rows)
                                        ? operand.copies + std::int64_t{groups.before(1, group)} * 16 * rows
                                        : operand.data + std::int64_t{first_row} * rows;
  return {first, rows, depth, std::uint64_t{Blocks<16>::of(depth)} * 16};
}

// A run, and the one `step` runs on: divisions are made anew for each group only.
template <class GroupsOf>
class RunCursor {
 public:
  __device__ RunCursor(const RaggedOperand& operand, std::uint32_t rows, const GroupsOf& groups, int group_count,
                       std::uint32_t number, std::uint32_t step)
      : operand_(operand), groups_(groups), rows_(rows), group_count_(group_count), step_(step), number_(number) {
    all_ = groups.total(1, group_count) * rows;
    if (number_ < all_) enter(groups.find(1, number_ / rows, group_count));
  }
  __device__ bool is_in() const { return number_ < all_; }
  __device__ bool is_copied() const { return copied_; }
  __device__ std::uint32_t number() const { return number_; }
  __device__ void load(UnalignedRun& run, bool wanted) const {
    run.load(reinterpret_cast<const char*>(first_) + std::int64_t{row_} * depth_, depth_, run_ * 16, wanted);
  }
  __device__ void advance() {
    number_ += step_;
    if (number_ >= all_) return;
    if (number_ >= end_) return enter(groups_.find(1, number_ / rows_, group_count_));
    row_ += step_rows_, run_ += step_runs_;
    if (run_ >= of_row_) run_ -= of_row_, ++row_;
  }

 private:
  __device__ void enter(int group) {
    depth_ = groups_.rows(group);
    of_row_ = Blocks<16>::of(depth_);
    const std::uint32_t begin = groups_.before(1, group) * rows_;
    end_ = begin + of_row_ * rows_;
    row_ = (number_ - begin) / of_row_, run_ = (number_ - begin) % of_row_;
    step_rows_ = step_ / of_row_, step_runs_ = step_ % of_row_;
    first_ = operand_.data + std::int64_t{groups_.first_row(group)} * rows_;
    copied_ = fp8_block::is_copied(groups_, group, rows_);
  }

  const RaggedOperand& operand_;
  const GroupsOf& groups_;
  std::uint32_t rows_;
  int group_count_;
  std::uint32_t step_, number_, all_, end_ = 0, depth_ = 0, of_row_ = 1, row_ = 0, run_ = 0, step_rows_ = 0, step_runs_ = 0;
  const std::uint8_t* first_ = nullptr;
  bool copied_ = false;
};

// All threads of all blocks: their part of the copies of one operand.
template <class GroupsOf>
__device__ void copy_groups(const RaggedOperand& operand, std::uint32_t rows, const GroupsOf& groups, int group_count) {
  constexpr int kInFlight = 8;
  RunCursor<GroupsOf> cursor(operand, rows, groups, group_count, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
  while (cursor.is_in()) {
    UnalignedRun runs[kInFlight];
    std::uint32_t to[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const bool copied = cursor.is_in() && cursor.is_copied();
      to[i] = copied ? cursor.number() : ~0u;
      cursor.load(runs[i], copied);
      if (cursor.is_in()) cursor.advance();
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
      if (to[i] != ~0u) reinterpret_cast<uint4*>(operand.copies)[to[i]] = runs[i].bytes();
  }
}

// All threads of all blocks. False, in all of them: a group breaks the promise of rows_multiple, which block 0 reports.
template <class GroupsOf>
__device__ bool align_groups(const Problem& problem, const GroupsOf& groups) {
  bool any = false, broken = false;
  for (int group = static_cast<int>(threadIdx.x); group < problem.rows.groups; group += static_cast<int>(blockDim.x)) {
    broken = broken || groups.rows(group) % problem.rows_multiple != 0;
    any = any || is_copied(groups, group, static_cast<std::uint32_t>(problem.m)) ||
          is_copied(groups, group, static_cast<std::uint32_t>(problem.n));
  }
  if (__syncthreads_or(broken) != 0) {
    if (threadIdx.x == 0) group_detail::tell(problem.status, kStatusUnalignedRows);
    return false;
  }
  if (problem.a.aligned || __syncthreads_or(any) == 0) return true;  // the same in all blocks
  copy_groups(problem.a, static_cast<std::uint32_t>(problem.m), groups, problem.rows.groups);
  copy_groups(problem.b, static_cast<std::uint32_t>(problem.n), groups, problem.rows.groups);
  order_with_copy_engine();
  cooperative_groups::this_grid().sync();
  order_with_copy_engine();
  return true;
}

}  // namespace assay::device::fp8_block
