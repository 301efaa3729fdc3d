#pragma once
// MXFP8, rows of 16-bit elements alone: rows are independent, so blocks of threads take rows of the buffer
// in order, regardless of the groups; only the place of a row's scales depends on its group.
//
//   traffic   2 B read, 1 B written per element, 1 B of scale per 32:  3.03 B/element
//   bound     HBM: one tensor is at the rate of a copy. Splits are read by every block before its first load, and cost
//             the same few hundredths for 8 groups as for 256
//   layout    a warp has 1024 columns of a row: 4 loads of 512 B, all in flight together, 4 stores of 256 B and one of
//             32 scales; 6 blocks of 8 warps per SM, 40 registers per thread. 4 lanes have a block of 32 columns:
//
//               columns 0 .. 7 | 8 .. 15 | 16 .. 23 | 24 .. 31 | 32 .. 39 | ... | 248 .. 255
//     load 0    lane 0         | lane 1  | lane 2   | lane 3   | lane 4   | ... | lane 31
//     load 1    the same lanes, columns 256 .. 511
//     load 2    the same lanes, columns 512 .. 767
//     load 3    the same lanes, columns 768 .. 1023
//     scales    lane 4 b + i makes that of block b of load i, columns 256 i + 32 b .. 256 i + 32 b + 31
//
//   matches   reference/recipes/mxfp8.h

#include "device/layout/segment_groups.cuh"
#include "device/quantize/matrix_patch.cuh"
#include "device/quantize/mxfp8/quantize_tiles.cuh"
#include "device/support/launch.cuh"

namespace assay::device::mxfp8 {

constexpr std::int64_t kRowColumns = 1024;  // of a warp
constexpr int kRowThreads = 256;
constexpr int kRowWarps = kRowThreads / 32;
constexpr int kSegmentRows = 32;  // of a block where there are groups

#if defined(__CUDACC__)

// By a warp: `row` of the buffer, `scale_row` of all rows of scales, padding included.
template <Format X, Format F>
__device__ __forceinline__ void quantize_row(const Mxfp8Tiles& a, std::uint32_t row, std::uint32_t scale_row,
                                             std::uint32_t column_tile, int lane) {
  using E = Element<X>;
  using Layout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  const std::int64_t first_column = column_tile * kRowColumns, begin = row * a.columns + first_column + lane * 8;
  // Columns from the lane's first on.
  const int left = static_cast<int>(min(a.columns - first_column, kRowColumns)) - lane * 8;
  const auto* x = static_cast<const unsigned char*>(a.x) + begin * 2;
  uint4 word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    word[i] = i * 256 < left ? reinterpret_cast<const uint4*>(x)[i * 32] : uint4{0, 0, 0, 0};
  }
  std::uint32_t maximum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = accumulate_absmax<X>(
        accumulate_absmax<X>(accumulate_absmax<X>(accumulate_absmax<X>(0, word[i].x), word[i].y), word[i].z), word[i].w);
  }
  // Two chunks of 256 columns in the halves of a word; then a lane has the block of chunk lane % 4.
  std::uint32_t pair[2];
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    pair[q] = accumulate_absmax<X>(__byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x5410),
                                   __byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x7632));
  }
  const bool upper = lane & 2;
  std::uint32_t both = accumulate_absmax<X>(upper ? pair[1] : pair[0], __shfl_xor_sync(kAllLanes, upper ? pair[0] : pair[1], 2));
  both = without_sign<X>(accumulate_absmax<X>(both, __shfl_xor_sync(kAllLanes, both, 1)));
  const std::uint32_t scale = scale_of<F>(E::amax_bits(lane & 1 ? both >> 16 : both & 0xFFFFu));
  if (a.row_scale != nullptr) {
    const std::uint32_t block =
        column_tile * static_cast<std::uint32_t>(kRowColumns / kBlock) + static_cast<std::uint32_t>(lane % 4 * 8 + lane / 4);
    const auto pitch = static_cast<std::uint32_t>(Layout::pitch(0, a.columns));
    if (block < (a.swizzled ? pitch : static_cast<std::uint32_t>(ceil_div(a.columns, kBlock)))) {
      const std::uint64_t at =
          a.swizzled ? swizzled_place(scale_row, block, pitch / 4) : std::uint64_t{scale_row} * pitch + block;
      a.row_scale[at] = static_cast<std::uint8_t>(scale);
    }
  }
  if (a.row_data == nullptr) return;
  const float own = e8m0_quantize_multiplier(scale);
  auto* const to = reinterpret_cast<uint2*>(a.row_data + begin);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float multiplier = __shfl_sync(kAllLanes, own, (lane & 28) | i);
    const uint2 codes = codes_of_eight<X, F>(word[i], multiplier, a.zero);
    if (i * 256 < left) to[i * 32] = codes;
  }
}

// By a warp: zeros for `count` rows of swizzled scales, the padding of a group.
__device__ __forceinline__ void pad_rows(const Mxfp8Tiles& a, std::int64_t scale_row, int count, std::uint32_t column_tile,
                                         int lane) {
  using Layout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  constexpr int kWords = kRowColumns / kTile;
  const std::int64_t pitch = Layout::pitch(0, a.columns), block = column_tile * (kRowColumns / kBlock) + lane % kWords * 4;
  if (block >= pitch) return;
#pragma unroll 1
  for (int i = lane / kWords; i < count; i += 32 / kWords) {
    store_scales(a.row_scale + swizzled_scale_index(scale_row + i, block, pitch / 4), 0, 4, a.scale_vectors);
  }
}

// Of one tensor: a warp has a row.
template <Format X, Format F>
__global__ void __launch_bounds__(kRowThreads, blocks_per_sm(6)) quantize_rows(const __grid_constant__ Mxfp8Tiles a) {
  if (is_skipped(a.noop) || a.columns == 0) return;
  const std::uint32_t strip = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - strip * a.column_tiles;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::uint32_t row = strip * kRowWarps + warp;
  if (row >= a.rows.capacity) return;
  quantize_row<X, F>(a, row, row, column_tile, lane);
  if (a.swizzled && a.row_scale != nullptr && std::int64_t{row} + 1 == a.rows.capacity) {
    pad_rows(a, std::int64_t{row} + 1, static_cast<int>(RoundedUp<kTile>::of(row + 1) - (row + 1)), column_tile, lane);
  }
}

// Ragged: a block finds the places of the scales of a segment's rows once, a thread for each row.
template <Format X, Format F>
__global__ void __launch_bounds__(kRowThreads, blocks_per_sm(6)) quantize_ragged_rows(const __grid_constant__ Mxfp8Tiles a) {
  using Layout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  __shared__ SegmentGroups<Layout::Measure, kSegmentRows> groups;
  __shared__ std::uint32_t scale_row[kSegmentRows];
  __shared__ int padding[kSegmentRows];  // rows of scales that follow

  if (is_skipped(a.noop)) return;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const std::uint32_t segment = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - segment * a.column_tiles;
  const std::uint32_t begin = segment * kSegmentRows;
  const int rows = groups.find(a.rows, begin, a.status, [&](std::uint32_t i, const auto& group, std::uint32_t row) {
    scale_row[i] = group.before + row;
    padding[i] = row + 1 == group.rows ? static_cast<int>(Layout::Measure::of(group.rows) - group.rows) : 0;
  });
  if (rows == 0 || a.columns == 0) return;
#pragma unroll 1
  for (int i = warp; i < rows; i += kRowWarps) {
    int own_lane = lane;
    asm volatile("" : "+r"(own_lane));  // so that values derived from it are not held in registers from row to row
    quantize_row<X, F>(a, begin + i, scale_row[i], column_tile, own_lane);
    if (a.swizzled && a.row_scale != nullptr && padding[i] != 0) {
      pad_rows(a, std::int64_t{scale_row[i]} + 1, padding[i], column_tile, own_lane);
    }
  }
}

template <Format X, Format F>
void launch_rows(const Mxfp8Tiles& tiles, cudaStream_t stream) {
  const auto kernel = tiles.rows.splits != nullptr ? quantize_ragged_rows<X, F> : quantize_rows<X, F>;
  launch_kernel("mxfp8: quantize_rows", kernel, tiles.blocks, kRowThreads, 0, stream, tiles);
}

#endif  // __CUDACC__

}  // namespace assay::device::mxfp8
