#pragma once
// Groups that need more than addresses: D of those without products is written, unaligned ones are copied. Each block scans all
// splits, and all blocks share the work of each such group.

#include <cstdint>

#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_copies.cuh"
#include "device/cublaslt/group_fill.cuh"
#include "device/cublaslt/group_work.h"

namespace assay::device::group_setup {

using Sums = GroupSums;

__device__ inline std::int64_t of_group(std::int64_t size, std::uint32_t rows) {
  return size == GemmSide::kOfGroup ? rows : size;
}

__device__ inline bool scan(const Arguments& arguments, GroupScratch& scratch, std::uint32_t& own, Sums& before) {
  return scan_groups<false>(arguments, {}, scratch, own, before) == 0;
}

struct GroupsWithWork {
  unsigned count;
  struct Group {
    std::uint32_t group, first_row, rows;
  } list[kMaxGroups];
};

template <int kCapacity>
__device__ void prepare_groups(const Arguments& arguments, const Lists<kCapacity>& lists,
                               group_detail::BlockScratch<Sums>& scratch, GroupsWithWork& work) {
  if (threadIdx.x == 0) work.count = 0;
  std::uint32_t rows;
  Sums before;
  if (!scan(arguments, scratch, rows, before)) return;  // has barriers
  const int t = static_cast<int>(threadIdx.x);
  const auto is_empty = [&](std::uint32_t of) {
    return of_group(arguments.a.depth, of) == 0 && of_group(arguments.b.extent, of) != 0;
  };
  if (t < arguments.rows.groups && (is_empty(rows) || is_copied(arguments.a, rows) || is_copied(arguments.b, rows))) {
    work.list[atomicAdd(&work.count, 1u)] = {static_cast<std::uint32_t>(t), before.value[0], rows};  // in any order
  }
  __syncthreads();
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x - kArrayBlocks) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x - kArrayBlocks) * blockDim.x;
  const unsigned count = work.count;
  for (unsigned i = 0; i < count; ++i) {
    const int group = static_cast<int>(work.list[i].group);
    const std::uint32_t first_row = work.list[i].first_row, of = work.list[i].rows;
    if (is_copied(arguments.a, of)) copy_aligned(arguments.a, group, first_row, of, thread, threads);
    if (is_copied(arguments.b, of)) copy_aligned(arguments.b, group, first_row, of, thread, threads);
    if (!is_empty(of)) continue;
    const std::int64_t m = of_group(arguments.b.extent, of), n = of_group(arguments.a.extent, of);
    const bool d_by_rows = arguments.b.extent == GemmSide::kOfGroup;
    const std::int64_t d_row = d_by_rows ? first_row : group * m;
    const std::int64_t at = d_row * n * arguments.d_half_bytes / 2;
    char* d = arguments.d + at;
    const char* c = arguments.c + at;
    if constexpr (kCapacity != 0) {
      if (arguments.list_is_d) {
        d = static_cast<char*>(const_cast<void*>(list_entry(lists, false, group)));
        c = d;
      }
    }
    const float alpha = scalar(arguments.alpha, arguments.scalars_per_group, group, 1.0f);
    const float beta = scalar(arguments.beta, arguments.scalars_per_group, group, 0.0f);
    switch (arguments.d_type) {
      case Format::f32: fill_elements<Format::f32>(d, c, m * n, alpha, beta, thread, threads); break;
      case Format::bf16: fill_elements<Format::bf16>(d, c, m * n, alpha, beta, thread, threads); break;
      default: fill_elements<Format::f16>(d, c, m * n, alpha, beta, thread, threads); break;
    }
  }
}

}  // namespace assay::device::group_setup
