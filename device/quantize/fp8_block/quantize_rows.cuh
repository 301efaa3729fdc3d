#pragma once
// FP8 block scaling of 16-bit x in rowwise direction alone: nothing is transposed, so a thread needs few registers and
// more of them share an SM than in quantize_tiles.cuh.
//
//   traffic   2 B read, 1 B written per element, 4 B of scale per 128 (1x128) or per 16384 (128x128):  3.03 B/element
//   ceiling   HBM: 1x128 reaches the rate of a copy within a few percent, ragged or not; 128x128 of one tensor reaches it
//   1x128     a row's 128 elements lie in 16 lanes: strips of rows, no barrier, no tiles. Ragged: codes lie where x
//             lies, only scales are placed by groups
//   128x128   a tile a block of 512 threads, 4 rows x 8 columns per thread, one barrier for its amax; 3 tiles per SM.
//             Ragged: quantize_tiles() of 256 threads, 4 blocks per SM. Where groups meet, a block has
//             several tiles one after another, and more blocks hide the gaps between them
//   gated     1x128: gate and up are read, 4 B for 2 (5.03 B/element); of 128x128 quantize_tiles() takes them
//   launch    while the kernel before ends (early_launch.cuh): 1 us less for each of two calls in a row
//   order     amax is a maximum of magnitudes: no order can change it
//   matches   reference/recipes/fp8_block.h

#include "device/layout/segment_groups.cuh"
#include "device/quantize/fp8_block/quantize_tiles.cuh"
#include "device/support/early_launch.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// 1x128: strips of 64 rows. A thread has 4 rows x 8 columns.
constexpr int kStripRows = 64;

// The 4 rows of a thread, as they were loaded, of which `rows` are there (0 or less: none, but the warp has some); `begin` is the
// first code.
// The scale of row i goes to a.row_scale[scale_place(i)].
template <Format X, Format F, class ScalePlace>
__device__ __forceinline__ void quantize_words(const Fp8BlockTiles& a, const uint4 (&word)[4], std::int64_t begin, int rows,
                                               bool has_columns, int lane, ScalePlace&& scale_place) {
  using E = Element<X>;
  std::uint32_t maximum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = E::accumulate_absmax(
        E::accumulate_absmax(E::accumulate_absmax(E::accumulate_absmax(0, word[i].x), word[i].y), word[i].z), word[i].w);
  }
  // Two rows in the halves of a word; then a lane has row (lane >> 2) & 3.
  std::uint32_t pair[2];
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    pair[q] = E::merge(__byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x5410),
                       __byte_perm(maximum[2 * q], maximum[2 * q + 1], 0x7632));
  }
  const bool high8 = lane & 8;
  std::uint32_t both = E::merge(high8 ? pair[1] : pair[0], __shfl_xor_sync(0xFFFFFFFFu, high8 ? pair[0] : pair[1], 8));
  both = E::merge(both, __shfl_xor_sync(0xFFFFFFFFu, both, 4));
  both = E::merge(both, __shfl_xor_sync(0xFFFFFFFFu, both, 2));
  both = E::merge(both, __shfl_xor_sync(0xFFFFFFFFu, both, 1));
  const int scale_row = lane >> 2 & 3;
  const std::uint32_t amax_bits = E::amax_bits(lane & 4 ? both >> 16 : both & 0xFFFFu);
  const float scale = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, E::kMaxBits);
  if (a.row_scale != nullptr && lane % 4 == 0 && scale_row < rows) a.row_scale[scale_place(scale_row)] = reciprocal(scale);
  if (a.row_data == nullptr) return;
  std::uint8_t* to = a.row_data + begin;
#pragma unroll
  for (int i = 0; i < 4; ++i, to += a.columns) {
    const float s = __shfl_sync(0xFFFFFFFFu, scale, (lane & 16) | i << 2);
    const uint2 codes = codes_of_eight<X, F>(word[i], s, a.zero);
    if (i < rows && has_columns) *reinterpret_cast<uint2*>(to) = codes;
  }
}

template <Format X, Format F, class ScalePlace>
__device__ __forceinline__ void quantize_strip(const Fp8BlockTiles& a, std::int64_t begin, int rows, bool has_columns, int lane,
                                               const ScalePlace& scale_place) {
  using E = Element<X>;
  const auto* x = static_cast<const unsigned char*>(a.x) + begin * E::kBytes;
  uint4 word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    word[i] = i < rows && has_columns ? *reinterpret_cast<const uint4*>(x + i * a.columns * E::kBytes) : uint4{0, 0, 0, 0};
  }
  quantize_words<X, F>(a, word, begin, rows, has_columns, lane, scale_place);
}

// The same of x that is computed from gate and up, from row `first_row` on.
template <Format X, Format F, class ScalePlace>
__device__ __forceinline__ void quantize_gated_strip(const Fp8BlockTiles& a, std::int64_t first_row, std::int64_t column,
                                                     int rows, int lane, const ScalePlace& scale_place) {
  const bool has_columns = column < a.columns;
  MatrixPatch<X, 4> patch;
  const auto* gate = static_cast<const unsigned char*>(a.x) + (2 * first_row * a.columns + column) * Element<X>::kBytes;
  load_gated_patch<X, true, 4>(patch, gate, a.columns, rows, has_columns ? 8 : 0);
  uint4 word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) word[i] = {patch.word[i][0], patch.word[i][1], patch.word[i][2], patch.word[i][3]};
  quantize_words<X, F>(a, word, first_row * a.columns + column, rows, has_columns, lane, scale_place);
}

// Of one tensor: a block has a strip.
template <Format X, Format F, bool kGated>
__global__ void __launch_bounds__(kThreads, 6) quantize_strips(const __grid_constant__ Fp8BlockTiles a) {
  using Layout = ScaleLayoutOf<Recipe::block_1x128, Direction::rowwise>;
  wait_for_earlier_kernels();
  if (is_skipped(a.noop) || a.columns == 0) return;
  const std::uint32_t strip = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - strip * a.column_tiles;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const std::int64_t first_row = std::int64_t{strip} * kStripRows + thread / 16 * 4;
  const std::int64_t rows = a.rows.capacity - first_row;
  if (rows + first_row % 8 <= 0) return;  // a whole warp
  const std::int64_t column = std::int64_t{column_tile} * kBlock + thread % 16 * 8;
  const auto scale_place = [&](int row) { return column_tile * Layout::pitch(a.rows.capacity, a.columns) + first_row + row; };
  if constexpr (kGated) {
    quantize_gated_strip<X, F>(a, first_row, column, static_cast<int>(min(rows, std::int64_t{4})), lane, scale_place);
  } else {
    quantize_strip<X, F>(a, first_row * a.columns + column, static_cast<int>(min(rows, std::int64_t{4})), column < a.columns,
                         lane, scale_place);
  }
}

// Ragged: codes lie where x lies, regardless of the groups; only the place of a row's scale depends on its group. A block
// finds that once for a segment of some strips, a thread for each row.
constexpr int kSegmentRows = 128;
static_assert(kSegmentRows <= kThreads);

template <Format X, Format F, bool kGated>
__global__ void __launch_bounds__(kThreads, 6) quantize_ragged_strips(const __grid_constant__ Fp8BlockTiles a) {
  using Layout = ScaleLayoutOf<Recipe::block_1x128, Direction::rowwise>;
  __shared__ SegmentGroups<Layout::Measure, kSegmentRows> groups;
  __shared__ std::int64_t scale_place[kSegmentRows];

  wait_for_earlier_kernels();
  if (is_skipped(a.noop)) return;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const std::uint32_t segment = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - segment * a.column_tiles;
  const std::uint32_t segment_begin = segment * kSegmentRows;
  const int rows = groups.find(a.rows, segment_begin, a.status, [&](std::uint32_t i, const auto& group, std::uint32_t row) {
    scale_place[i] = Layout::factor(a.columns) * group.before + column_tile * Layout::pitch(group.rows, a.columns) + row;
  });
  if (rows == 0 || a.columns == 0) return;
  const std::int64_t column = std::int64_t{column_tile} * kBlock + thread % 16 * 8;
#pragma unroll 1
  for (int own_row = thread / 16 * 4; own_row - own_row % 8 < rows; own_row += kStripRows) {  // the same for all lanes of a warp
    const auto place = [&](int row) { return scale_place[own_row + row]; };
    if constexpr (kGated) {
      quantize_gated_strip<X, F>(a, std::int64_t{segment_begin} + own_row, column, min(rows - own_row, 4), lane, place);
    } else {
      quantize_strip<X, F>(a, (std::int64_t{segment_begin} + own_row) * a.columns + column, min(rows - own_row, 4),
                           column < a.columns, lane, place);
    }
  }
}

// 128x128 of one tensor: kSquareRows rows x 8 columns per thread.
constexpr int kSquareRows = 4;
constexpr int kSquareThreads = kBlock / kSquareRows * 16;
constexpr int squares_an_sm() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return 2;  // without FP8 instructions the conversion needs more registers
#else
  return 3;
#endif
}

template <Format X, Format F>
__global__ void __launch_bounds__(kSquareThreads, squares_an_sm()) quantize_squares(const __grid_constant__ Fp8BlockTiles a) {
  using E = Element<X>;
  using Layout = ScaleLayoutOf<Recipe::block_128x128, Direction::rowwise>;
  __shared__ std::uint32_t warp_amax[kSquareThreads / 32];

  wait_for_earlier_kernels();
  if (is_skipped(a.noop) || a.columns == 0) return;  // all threads of a block return together
  const std::uint32_t row_tile = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - row_tile * a.column_tiles;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_row = std::int64_t{row_tile} * kBlock + thread / 16 * kSquareRows;
  const std::int64_t column = std::int64_t{column_tile} * kBlock + thread % 16 * 8;
  const int rows = column < a.columns ? static_cast<int>(min(a.rows.capacity - first_row, std::int64_t{kSquareRows})) : 0;
  const std::int64_t begin = first_row * a.columns + column;
  uint4 word[kSquareRows];
  const auto* x = static_cast<const unsigned char*>(a.x) + begin * E::kBytes;
#pragma unroll
  for (int i = 0; i < kSquareRows; ++i, x += a.columns * E::kBytes) {
    word[i] = i < rows ? *reinterpret_cast<const uint4*>(x) : uint4{0, 0, 0, 0};
  }
  std::uint32_t maximum = 0;
#pragma unroll
  for (int i = 0; i < kSquareRows; ++i) {
    maximum = E::accumulate_absmax(
        E::accumulate_absmax(E::accumulate_absmax(E::accumulate_absmax(maximum, word[i].x), word[i].y), word[i].z), word[i].w);
  }
  const std::uint32_t of_warp = __reduce_max_sync(0xFFFFFFFFu, E::amax_bits(maximum));
  if (thread % 32 == 0) warp_amax[thread / 32] = of_warp;
  __syncthreads();
  const std::uint32_t amax_bits = __reduce_max_sync(0xFFFFFFFFu, warp_amax[thread % (kSquareThreads / 32)]);
  const float scale = scale_from_amax(amax_bits, a.max, a.pow2, a.epsilon, E::kMaxBits);
  if (a.row_scale != nullptr && thread == 0) {
    a.row_scale[Layout::pitch(a.rows.capacity, a.columns) * row_tile + column_tile] = reciprocal(scale);
  }
  if (a.row_data == nullptr) return;
  std::uint8_t* to = a.row_data + begin;
#pragma unroll
  for (int i = 0; i < kSquareRows; ++i, to += a.columns) {
    const uint2 codes = codes_of_eight<X, F>(word[i], scale, a.zero);
    if (i < rows) *reinterpret_cast<uint2*>(to) = codes;
  }
}

// For 16-bit x, aligned; row_data or row_scale or both are requested.
template <Format X, Format F, bool kSquare, bool kGated>
void launch_rows(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  static_assert(!kSquare || !kGated);
  if constexpr (kSquare) {
    if (tiles.rows.splits != nullptr) return launch<X, F, kSquare, kRowPart, true>(tiles, stream);
    launch_kernel_early("quantize_squares", quantize_squares<X, F>, tiles.blocks, kSquareThreads, 0, stream, tiles);
  } else if (tiles.rows.splits != nullptr) {
    const auto segments = static_cast<std::uint32_t>(ceil_div(tiles.rows.capacity, kSegmentRows));
    launch_kernel_early("quantize_ragged_strips", quantize_ragged_strips<X, F, kGated>, max(segments, 1u) * tiles.column_tiles,
                        kThreads, 0, stream, tiles);
  } else {
    constexpr unsigned kParts = kGated ? kRowPart | kGatedPart : kRowPart;
    if (tiles.blocks >= 1u << 30) return launch<X, F, kSquare, kParts, true>(tiles, stream);
    launch_kernel_early("quantize_strips", quantize_strips<X, F, kGated>, 2 * tiles.blocks, kThreads, 0, stream, tiles);
  }
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
