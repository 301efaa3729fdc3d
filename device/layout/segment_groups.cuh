#pragma once
// The groups that have rows in a segment of the buffer: for kernels that take the rows of the buffer in order, regardless of
// the groups, and need a group only for the place of a row's scales. A block finds that once, a thread for each row.

#include <cstdint>

#include "device/layout/group_table.cuh"

#if defined(__CUDACC__)

namespace assay::device {

// In shared memory, one per block of at least kSegmentRows threads. See scale_layout.cuh for Measure.
template <class Measure, int kSegmentRows>
struct SegmentGroups {
  struct Group {
    std::uint32_t first_row;  // in the buffer
    std::uint32_t rows;       // 1 or more
    std::uint32_t before;     // sum of Measure over the groups before
  };

  // Rows of the segment that begins at row `begin`; 0, in every thread: it lies beyond the groups, or the splits are invalid,
  // which block 0 reports. For thread i < kSegmentRows whose row i is of a group, place(i, group, row of the group) is called.
  // Called by all threads of a one-dimensional block of whole warps; ends with a barrier unless it gives 0.
  template <class Place>
  __device__ __forceinline__ int find(const Rows& rows, std::uint32_t begin, std::uint32_t* status, Place&& place) {
    const auto thread = static_cast<std::uint32_t>(threadIdx.x);
    if (thread == 0) count_ = 0;
    int first, last;
    Sums running, total;
    if (!group_detail::scan_block(rows, scratch_, status, first, last, running, total) || begin >= total.value[0]) return 0;
    unsigned no_faults = 0;
    for (int t = first; t < last && running.value[0] < begin + kSegmentRows; ++t) {
      const std::uint32_t own_rows = group_detail::read_split(rows, t, no_faults), first_row = running.value[0];
      if (own_rows != 0 && first_row + own_rows > begin) {
        list_[atomicAdd(&count_, 1u)] = {first_row, own_rows, running.value[1]};  // in any order
      }
      running.add(Sums::of(own_rows), static_cast<std::uint32_t>(rows.capacity));
    }
    __syncthreads();
    const unsigned found = count_;
    for (unsigned g = 0; g < found; ++g) {
      const Group group = list_[g];
      const std::uint32_t row = begin + thread - group.first_row;
      if (thread < kSegmentRows && row < group.rows) place(thread, group, row);
    }
    __syncthreads();
    return static_cast<int>(min(total.value[0] - begin, static_cast<std::uint32_t>(kSegmentRows)));
  }

 private:
  using Sums = group_detail::Sums<Measure>;
  group_detail::BlockScratch<Sums> scratch_;
  unsigned count_;
  Group list_[kSegmentRows];
};

}  // namespace assay::device

#endif  // __CUDACC__
