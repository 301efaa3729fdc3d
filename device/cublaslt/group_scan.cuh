#pragma once
// Where each group of a call begins: the sums of rows and of scales over the groups before it, and whether the
// splits are valid. A thread per group, one barrier; none where one warp is enough.

#include <cstdint>

#include "device/layout/group_table.cuh"

namespace assay::device::group_setup {

// The splits and the checks on them.
struct GroupRows {
  Rows rows;
  std::uint32_t* status;  // may be null
  // Rows of every group are a multiple of a unit, odd * 2^bits (kStatusUnalignedRows otherwise). rows / odd modulo 2^32, its
  // low bits brought to the top, is rows / unit for multiples, and more than all of those for others.
  std::uint32_t inverse_of_odd, max_units;
  std::uint8_t unit_bits;
  bool odd_rows_refused;  // nvfp4, contraction over the rows

  void set_row_unit(std::uint32_t unit) {
    unit_bits = static_cast<std::uint8_t>(__builtin_ctz(unit));
    const std::uint32_t odd = unit >> unit_bits;
    inverse_of_odd = odd;  // right in 3 bits; each step doubles them
    for (int step = 0; step < 4; ++step) inverse_of_odd *= 2 - odd * inverse_of_odd;
    max_units = 0xFFFFFFFFu / unit;
  }
};

// The number of scales of x or dy in a group: its blocks of 2^block_bits rows, rounded up to a multiple of `unit`, a power
// of 2 (ScaleLayoutOf<...>::Measure with parameters at run time).
struct ScaleMeasure {
  std::uint32_t block_bits = 0, unit = 1;
};

#if defined(__CUDACC__)

struct GroupSums {
  static constexpr int kCount = 2;
  std::uint32_t value[kCount];  // rows, held at most_rows + 1 once past it, so that nothing wraps; scales as measured

  static __device__ GroupSums of(std::uint32_t rows, ScaleMeasure measure) {
    const std::uint32_t blocks = (rows + (1u << measure.block_bits) - 1) >> measure.block_bits;
    return {{rows, (blocks + measure.unit - 1) & (0u - measure.unit)}};
  }
  __device__ void add(const GroupSums& other, std::uint32_t max_rows) {
    value[0] = min(value[0] + other.value[0], max_rows + 1);
    value[1] += other.value[1];
  }
};
using GroupScratch = group_detail::BlockScratch<GroupSums>;

// Prefetches to L2, which sees the writes of other kernels: those may still be running.
__device__ inline void prefetch_splits(const GroupRows& groups) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const int t = static_cast<int>(threadIdx.x);
  if (groups.rows.splits != nullptr && t < groups.rows.groups) {
    const char* const first = reinterpret_cast<const char*>(groups.rows.splits);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(first + t * (groups.rows.splits_are_int32 ? 4 : 8)));
  }
#else
  (void)groups;
#endif
}

// group_detail::read_split() by an ordinary load: the compiler may move an __ldg before the wait for the kernels that wrote them.
__device__ inline std::uint32_t read_split(const Rows& rows, int t, unsigned& faults) {
  const std::int64_t split = load_split(rows, t);
  if (split < 0) faults |= kStatusNegativeSplit;
  if (split > rows.capacity) faults |= kStatusSplitsExceedRows;
  return split < 0 || split > rows.capacity ? 0u : static_cast<std::uint32_t>(split);
}

// The faults of one group's rows.
__device__ inline unsigned faults_of(const GroupRows& groups, std::uint32_t rows) {
  const std::uint32_t quotient = rows * groups.inverse_of_odd;
  const bool unaligned = __funnelshift_r(quotient, quotient, groups.unit_bits) > groups.max_units;
  const bool odd = groups.odd_rows_refused && rows % 2 != 0;
  return (unaligned ? kStatusUnalignedRows : 0u) | (odd ? kStatusOddPackedExtent : 0u);
}

// Rows of group threadIdx.x and the sums before it; 0 past the last group. A block has a thread for each group, and with
// kOneWarp one warp. Faults are those of all groups, the same in every thread; with faults the sums are not valid.
template <bool kOneWarp>
__device__ unsigned scan_groups(const GroupRows& groups, ScaleMeasure measure, GroupScratch& scratch, std::uint32_t& own,
                                GroupSums& before) {
  constexpr unsigned kAllLanes = 0xFFFFFFFFu, kOfSplits = kStatusNegativeSplit | kStatusSplitsExceedRows;
  const auto max_rows = static_cast<std::uint32_t>(groups.rows.capacity);
  const int t = static_cast<int>(threadIdx.x);
  const bool has_splits = groups.rows.splits != nullptr;
  unsigned faults = 0;
  own = has_splits || t != 0 ? 0 : max_rows;
  if (has_splits && t < groups.rows.groups) own = read_split(groups.rows, t, faults);
  faults |= faults_of(groups, own);

  const GroupSums own_sums = GroupSums::of(own, measure);
  GroupSums through = group_detail::scan_warp(own_sums, max_rows);
  faults = __reduce_or_sync(kAllLanes, faults);
  std::uint32_t total;
  if constexpr (kOneWarp) {
    total = __shfl_sync(kAllLanes, through.value[0], 31);
  } else {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 31) {
      scratch.of_warp[warp] = through;
      scratch.faults[warp] = faults;
    }
    __syncthreads();
    GroupSums of_warp{};  // lane w: of warp w
    faults = 0;
    if (lane < blockDim.x / 32) {
      of_warp = scratch.of_warp[lane];
      faults = scratch.faults[lane];
    }
    const GroupSums through_warps = group_detail::scan_warp(of_warp, max_rows);
    faults = __reduce_or_sync(kAllLanes, faults);
    total = __shfl_sync(kAllLanes, through_warps.value[0], 31);
#pragma unroll
    for (int i = 0; i < GroupSums::kCount; ++i) {
      through.value[i] += __shfl_sync(kAllLanes, through_warps.value[i] - of_warp.value[i], static_cast<int>(warp));
    }
  }
  if (total > max_rows) faults |= kStatusSplitsExceedRows;
  if ((faults & kOfSplits) != 0) faults &= kOfSplits;  // the others are reported for valid splits only
#pragma unroll
  for (int i = 0; i < GroupSums::kCount; ++i) before.value[i] = through.value[i] - own_sums.value[i];
  return faults;
}

#endif  // __CUDACC__

}  // namespace assay::device::group_setup
