#pragma once
// NVFP4, rows of 16-bit elements alone: rows are independent, so blocks of threads take rows of the buffer
// in order; the group of a row determines its amax and the place of its scales.
//
//   traffic   2 B read, 1/2 B written per element, 1 B of scale per 16:  2.56 B/element; stochastic 1 B more
//   bound     HBM, within a twentieth of the rate of a copy for one tensor whose amax is given. The issue of
//             instructions (16 per element: no conversion to E2M1 in SM90) alone would take nine tenths of that time;
//             stochastic (24) the two are even. Groups add a look-up before (nvfp4.cu) and what is loaded of them from
//             row to row
//   layout    a warp has 1024 columns of a row: 4 loads of 512 B, all in flight together, 4 stores of 128 B; 2 lanes
//             have a block of 16 columns and make the scales of two of their four blocks each. No shared memory. 5
//             blocks of 8 warps per SM, 48 registers per thread; stochastic 4.
//   matches   reference/recipes/nvfp4.h

#include <cuda_runtime.h>

#include <cstdint>

#include "device/formats/absmax.cuh"
#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/quantize/nvfp4/call.h"
#include "device/quantize/nvfp4/e2m1_codes.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/scales.cuh"
#include "device/quantize/nvfp4/stores.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"
#include "device/support/early_launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device::nvfp4 {

constexpr std::int64_t kRowColumns = 1024;  // of a warp

#if defined(__CUDACC__)

// By a warp: `row` of the buffer, `scale_row` of all rows of scales, padding included.
template <Format X, bool kStochastic>
__device__ __forceinline__ void quantize_row(const Nvfp4Tiles& a, std::uint32_t row, std::uint32_t scale_row,
                                             const Scaling& scaling, std::uint32_t column_tile, int lane, bool skipped) {
  using E = Element<X>;
  using Layout = ScaleLayoutOf<Recipe::nvfp4, Direction::rowwise>;
  const std::int64_t first_column = column_tile * kRowColumns, begin = row * a.columns + first_column + lane * 8;
  // Columns from the lane's first on.
  const int left = static_cast<int>(min(a.columns - first_column, kRowColumns)) - lane * 8;
  const auto* x = reinterpret_cast<const uint4*>(static_cast<const unsigned char*>(a.x) + begin * 2);
  std::uint32_t word[4][4];
  uint2 random[kStochastic ? 4 : 1];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint4 vector = i * 256 < left ? x[i * 32] : uint4{0, 0, 0, 0};
    word[i][0] = vector.x, word[i][1] = vector.y, word[i][2] = vector.z, word[i][3] = vector.w;
  }
  if constexpr (kStochastic) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      random[i] = i * 256 < left ? reinterpret_cast<const uint2*>(a.row_random + begin)[i * 32] : uint2{0, 0};
    }
  }
  if (skipped) return;  // tested only now, so that x is loading meanwhile
  std::uint32_t maximum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) maximum[i] = accumulate_absmax<X>(maximum[i], word[i][w]);
  }
  // Two chunks of 256 columns in the halves of a word: of its two lanes, one has chunks 0 and 1, the other 2 and 3.
  std::uint32_t pair[2];
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    pair[q] = accumulate_absmax<X>(__byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x5410),
                                   __byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x7632));
  }
  const bool upper = lane & 1;
  const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? pair[0] : pair[1], 1);
  const std::uint32_t both = without_sign<X>(accumulate_absmax<X>(upper ? pair[1] : pair[0], other));
  const std::uint32_t scales = scales_of(uint2{E::amax_bits(both & 0xFFFFu), E::amax_bits(both >> 16)}, scaling);
  if (a.row_scale != nullptr) {
    const auto pitch = static_cast<std::uint32_t>(Layout::pitch(0, a.columns));
    const std::uint32_t blocks = a.swizzled ? pitch : static_cast<std::uint32_t>(ceil_div(a.columns, kBlock));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::uint32_t block = column_tile * static_cast<std::uint32_t>(kRowColumns / kBlock) +
                                  static_cast<std::uint32_t>((upper * 2 + h) * 16 + lane / 2);
      if (block >= blocks) continue;
      const std::uint64_t at =
          a.swizzled ? swizzled_place(scale_row, block, pitch / 4) : std::uint64_t{scale_row} * pitch + block;
      a.row_scale[at] = static_cast<std::uint8_t>(scales >> (8 * h));
    }
  }
  if (a.row_data == nullptr) return;
  float first, second;
  multipliers_of(scales, scaling, first, second);
  const float other_first = __shfl_xor_sync(kAllLanes, first, 1), other_second = __shfl_xor_sync(kAllLanes, second, 1);
  auto* const to = reinterpret_cast<std::uint32_t*>(a.row_data + begin / 2);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float multiplier =
        i % 2 == 0 ? (upper == (i / 2 != 0) ? first : other_first) : (upper == (i / 2 != 0) ? second : other_second);
#pragma unroll
    for (int w = 0; w < 4; ++w) word[i][w] = settled<X>(word[i][w], a.zero);
    std::uint32_t count[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float v = multiply(E::widen(word[i][c / 2], c % 2), multiplier);
      if constexpr (kStochastic) {
        count[c] = count_stochastic(v, (c < 4 ? random[i].x : random[i].y) >> (8 * (c % 4)) & 0xFFu);
      } else {
        count[c] = count_nearest(v);
      }
    }
    const std::uint32_t codes = pack_counts(count) | row_signs<X>(word[i]);
    if (i * 256 < left) to[i * 32] = codes;
  }
}

// By a warp: zeros for `count` rows of swizzled scales, the padding of a group.
__device__ __forceinline__ void pad_rows(const Nvfp4Tiles& a, std::int64_t scale_row, int count, std::uint32_t column_tile,
                                         int lane) {
  using Layout = ScaleLayoutOf<Recipe::nvfp4, Direction::rowwise>;
  constexpr int kWords = kRowColumns / (4 * kBlock);
  const std::int64_t pitch = Layout::pitch(0, a.columns), block = column_tile * (kRowColumns / kBlock) + lane % kWords * 4;
#pragma unroll 1
  for (int i = lane / kWords; i < count; i += 32 / kWords) {
    store_scales(a.row_scale, scale_row, i, block, 0, pitch, false, true, 0);
  }
}

// A block has 16 rows of the buffer, a warp two of them, one after the other.
template <Format X, bool kStochastic>
__global__ void __launch_bounds__(kThreads, kStochastic ? 4 : kBlocksPerSm)
    quantize_rows_alone(const __grid_constant__ Nvfp4Tiles a) {
  wait_for_earlier_kernels();
  const bool skipped = is_skipped(a.skip);
  const std::uint32_t block = a.reversed ? a.blocks - 1 - blockIdx.x : blockIdx.x;
  const std::uint32_t segment = block / a.column_tiles, column_tile = block - segment * a.column_tiles;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto capacity = static_cast<std::uint32_t>(a.rows.capacity);
  const bool ragged = a.rows.splits != nullptr;
  std::uint32_t group = ragged ? __ldg(a.group_of_rows + segment) : 0;
  if (ragged && (skipped || group == kNvfp4NoGroup)) return;
  Nvfp4Group of_group{0, capacity, 0, 0};
  const auto load_group = [&] {
    const uint4 words = __ldg(reinterpret_cast<const uint4*>(a.groups + group));
    of_group = {words.x, words.y, words.z, words.w};
  };
  if (ragged) load_group();
#pragma unroll 1
  for (std::uint32_t row = segment * kNvfp4SegmentRows + warp; row < (segment + 1) * kNvfp4SegmentRows && row < capacity;
       row += kThreads / 32) {
    while (ragged && row - of_group.first_row >= of_group.rows) {
      if (++group == static_cast<std::uint32_t>(a.rows.groups)) return;  // past all groups
      load_group();
    }
    int own_lane = lane;
    asm volatile("" : "+r"(own_lane));  // so that values derived from it are not held in registers from row to row
    const std::uint32_t in_group = row - of_group.first_row;
    const std::uint32_t scale_row = of_group.tiles_before * kTile + in_group;
    quantize_row<X, kStochastic>(a, row, scale_row, load_scaling(a.row_scaling, group), column_tile, own_lane, skipped);
    if (a.swizzled && a.row_scale != nullptr && in_group + 1 == of_group.rows && !skipped) {
      pad_rows(a, std::int64_t{scale_row} + 1, static_cast<int>(RoundedUp<kTile>::of(of_group.rows) - of_group.rows), column_tile,
               own_lane);
    }
  }
}

template <Format X, bool kStochastic>
void launch_rows(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  const auto kernel = quantize_rows_alone<X, kStochastic>;
  launch_kernel_early("nvfp4: quantize_rows_alone", kernel, tiles.blocks, kThreads, 0, stream, tiles);
}

#endif  // __CUDACC__

}  // namespace assay::device::nvfp4
