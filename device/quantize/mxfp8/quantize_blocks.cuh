#pragma once
// MXFP8 of 16-bit elements where columns are requested, without dbias and 2-D tiles: 32 rows x 512 columns per block of
// threads, one columnwise block high, so that no warp is idle in short groups and no block of threads has several groups.
//
//   traffic   2 B read, 1 B written per element and direction, 1 B of scale per 32:  4.06 B/element for both
//   bound     HBM, at nine tenths and more of the rate of a copy, with 256 groups almost as with none. A block reads
//             everything before it writes: only the other blocks of an SM fill the time between
//   layout    8 warps side by side, 64 columns each; a lane has 8 rows x 8 columns, which take 32 of its 64 registers:
//             4 blocks share an SM. 8 lanes make 128 B of a row, 4 groups of 8 lanes the 32 rows: a row's block of 32
//             lies in 4 lanes, a column's in 4. All 8 loads of a lane (16 B each) are in flight together.
//
//     of a warp:       columns 0 .. 7 | 8 .. 15 | 16 .. 23 | 24 .. 31 | 32 .. 39 | ... | 56 .. 63
//     rows  0 ..  7    lane 0         | lane 1  | lane 2   | lane 3   | lane 4   | ... | lane 7
//     rows  8 .. 15    lane 8         | lane 9  | ...                                  | lane 15
//     rows 16 .. 23    lane 16        | ...                                            | lane 23
//     rows 24 .. 31    lane 24        | ...                                            | lane 31
//
//   scales    of rows, and swizzled ones of columns, through shared memory to pieces of 16 B and more
//   matches   reference/recipes/mxfp8.h

#include "device/quantize/mxfp8/quantize_tiles.cuh"
#include "device/support/launch.cuh"

namespace assay::device::mxfp8 {

constexpr int kPieceColumns = 512;
constexpr int kPieceThreads = 256;

#if defined(__CUDACC__)

// One of two neighbours by a bit of the lane, and the other one for the lane kStep away.
template <Format X>
__device__ __forceinline__ std::uint32_t keep_half(std::uint32_t low, std::uint32_t high, bool upper, int step) {
  const std::uint32_t other = __shfl_xor_sync(kAllLanes, upper ? low : high, step);
  return accumulate_absmax<X>(upper ? high : low, other);
}

// Scales of two amaxes in the halves of `both`, in bytes 0 and 1; `multipliers` likewise in halves.
template <Format X, Format F>
__device__ __forceinline__ std::uint32_t scales_of_pair(std::uint32_t both, std::uint32_t& multipliers) {
  using E = Element<X>;
  both = without_sign<X>(both);
  const std::uint32_t low = scale_of<F>(E::amax_bits(both & 0xFFFFu)), high = scale_of<F>(E::amax_bits(both >> 16));
  // Exact: powers of two.
  multipliers = __byte_perm(bits_of_float(e8m0_quantize_multiplier(low)), bits_of_float(e8m0_quantize_multiplier(high)), 0x7632);
  return low | high << 8;
}

__device__ __forceinline__ float multiplier_of(std::uint32_t pair, int half) {
  return float_of_bits(half == 0 ? pair << 16 : pair & 0xFFFF'0000u);
}

// Columnwise: amaxes, scales to shared memory, codes to memory. codes_of(i, multiplier) are those of row i.
template <Format X, Format F, class CodesOf>
__device__ __forceinline__ void quantize_block_columns(const Mxfp8Tiles& a, const std::uint32_t (&word)[8][4], int lane, int warp,
                                                       int p, int r, int own_rows, std::int64_t begin, const CodesOf& codes_of,
                                                       std::uint8_t* column_scales) {
  std::uint32_t maximum[4];  // of columns 2w and 2w + 1
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    maximum[w] = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) maximum[w] = accumulate_absmax<X>(maximum[w], word[i][w]);
  }
  const bool upper2 = lane & 16, upper1 = lane & 8;
  maximum[0] = keep_half<X>(maximum[0], maximum[2], upper2, 16);
  maximum[1] = keep_half<X>(maximum[1], maximum[3], upper2, 16);
  std::uint32_t own;
  const std::uint32_t scales = scales_of_pair<X, F>(keep_half<X>(maximum[0], maximum[1], upper1, 8), own);
  // Columns 2r and 2r + 1 of the lane's 8. Those past the last column are 0.
  *reinterpret_cast<std::uint16_t*>(column_scales + warp * 64 + p * 8 + r * 2) = static_cast<std::uint16_t>(scales);
  if (a.column_data != nullptr) {
    std::uint32_t pair[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) pair[w] = __shfl_sync(kAllLanes, own, p | w << 3);
    std::uint8_t* to = a.column_data + begin;
#pragma unroll
    for (int i = 0; i < 8; ++i, advance(to, a.columns)) {
      const uint2 codes = codes_of(i, [&](int c) { return multiplier_of(pair[c / 2], c % 2); });
      if (i < own_rows) *reinterpret_cast<uint2*>(to) = codes;
    }
  }
}

// Row scales of the block, by its first kTile threads. The last block of a group also writes the padding of swizzled scales.
__device__ __forceinline__ void store_block_row_scales(const Mxfp8Tiles& a, std::uint32_t row_in_group, int rows, bool is_last,
                                                       std::int64_t tiles_before, std::int64_t first_column, int thread,
                                                       const uint4* row_scales) {
  using RowLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::rowwise>;
  const std::int64_t pitch = RowLayout::pitch(0, a.columns), first_block = first_column / kBlock;
  const int padded = a.swizzled && is_last ? kTile - static_cast<int>(row_in_group % kTile) : kBlock;
  for (int task = thread; task < padded * 4; task += kTile) {  // 4 blocks of a row
    const int row = task / 4, four = task % 4;
    const bool inside = row < rows;
    const std::uint32_t scales = inside ? reinterpret_cast<const std::uint32_t*>(row_scales)[row * 4 + four] : 0;
    const std::int64_t block = first_block + four * 4, scale_row = tiles_before * kTile + row_in_group + row;
    if (block >= pitch) continue;
    if (a.swizzled) {
      store_scales(a.row_scale + swizzled_scale_index(scale_row, block, pitch / 4), scales, 4, a.scale_vectors);
    } else if (inside) {
      store_scales(a.row_scale + scale_row * pitch + block, scales,
                   static_cast<int>(min(ceil_div(a.columns, kBlock) - block, std::int64_t{4})), a.scale_vectors);
    }
  }
}

// Column scales of the block, by its other kTile threads, which `task` counts.
__device__ __forceinline__ void store_block_column_scales(const Mxfp8Tiles& a, const GroupTile<1>& found, bool is_last,
                                                          std::int64_t tiles_before, std::int64_t first_column, int task,
                                                          const std::uint8_t* column_scales) {
  using ColumnLayout = ScaleLayoutOf<Recipe::mxfp8, Direction::columnwise>;
  const std::int64_t pitch = ColumnLayout::pitch(0, a.columns);
  if (!a.swizzled) {
    const std::uint32_t scales = reinterpret_cast<const std::uint32_t*>(column_scales)[task];
    const std::int64_t at = (tiles_before * 4 + found.tile) * pitch + first_column + task * 4;
    store_scales(a.column_scale + at, scales, static_cast<int>(min(a.columns - first_column - task * 4, std::int64_t{4})),
                 a.scale_vectors);
  } else {
    // Bytes that lie together: 4 columns that are 32 apart, then the next column.
    std::uint8_t* const group = a.column_scale + tiles_before * 4 * ColumnLayout::factor(a.columns);
    const std::int64_t tiles_j = ColumnLayout::tiles_j(found.rows, a.columns);
#pragma unroll
    for (int tile = 0; tile < kPieceColumns / kTile; ++tile) {
      const int in_tile = task / 4 + task % 4 * 32;
      if (first_column + tile * kTile >= pitch) break;
      std::uint8_t* const to = group + ((first_column / kTile + tile) * tiles_j + found.tile / 4) * 512 + task * 4;
      const int b = found.tile % 4;
      to[b] = column_scales[tile * kTile + in_tile];
      if (is_last) {
        for (int later = b + 1; later < 4; ++later) to[later] = std::uint8_t{0};
      }
    }
  }
}

// Amaxes of a lane's 8 columns of its rows 2q and 2q + 1, in the halves of pair[q].
template <Format X>
__device__ __forceinline__ void row_amaxes_of_lane(const std::uint32_t (&word)[8][4], std::uint32_t (&pair)[4]) {
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    std::uint32_t of_row[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int w = 0; w < 4; ++w) of_row[h] = accumulate_absmax<X>(of_row[h], word[2 * q + h][w]);
    }
    pair[q] = accumulate_absmax<X>(__byte_perm(of_row[0], of_row[1], 0x5410), __byte_perm(of_row[0], of_row[1], 0x7632));
  }
}

// The rowwise codes. `multipliers`: of rows 2 (lane % 4) and the next of the lane's 8, in halves.
template <class CodesOf>
__device__ __forceinline__ void store_block_row_codes(const Mxfp8Tiles& a, std::int64_t begin, int own_rows, int lane,
                                                      std::uint32_t multipliers, const CodesOf& codes_of) {
  std::uint8_t* to = a.row_data + begin;
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const std::uint32_t of_rows = __shfl_sync(kAllLanes, multipliers, (lane & 28) | q);
#pragma unroll
    for (int h = 0; h < 2; ++h, advance(to, a.columns)) {
      const float multiplier = multiplier_of(of_rows, h);
      const uint2 codes = codes_of(2 * q + h, [&](int) { return multiplier; });
      if (2 * q + h < own_rows) *reinterpret_cast<uint2*>(to) = codes;
    }
  }
}

// Scales of the block, from shared memory, where `place` is too.
template <unsigned kParts>
__device__ __forceinline__ void store_block_scales(const Mxfp8Tiles& a, const GroupTile<1>& place, GroupTile<1>& found,
                                                   std::int64_t first_column, int thread, const uint4* row_scales,
                                                   const std::uint8_t* column_scales) {
  __syncthreads();
  found = place;
  const std::uint32_t row_in_group = found.tile * kBlock;
  const int rows = static_cast<int>(min(found.rows - row_in_group, std::uint32_t{kBlock}));
  const bool is_last = row_in_group + kBlock >= found.rows;
  const std::int64_t tiles_before = found.before[0];
  if ((kParts & kRowPart) && a.row_scale != nullptr && thread < kTile) {
    store_block_row_scales(a, row_in_group, rows, is_last, tiles_before, first_column, thread, row_scales);
  }
  if ((kParts & kColumnPart) && a.column_scale != nullptr && thread >= kTile) {
    store_block_column_scales(a, found, is_last, tiles_before, first_column, thread - kTile, column_scales);
  }
}

// The load and the row scales stay in the body: as functions they change the machine code.
template <Format X, Format F, unsigned kParts>
__global__ void __launch_bounds__(kPieceThreads, blocks_per_sm(4)) quantize_blocks(const __grid_constant__ Mxfp8Tiles a) {
  using E = Element<X>;
  __shared__ LocateTile<kBlock, Blocks<kTile>> locate;
  __shared__ uint4 row_scales[kBlock];  // [row][16 blocks]
  __shared__ std::uint8_t column_scales[kPieceColumns];
  __shared__ GroupTile<1> place;  // read again at the end, so that no registers hold it meanwhile

  if (is_skipped(a.noop)) return;
  const std::uint32_t number = blockIdx.x / a.column_tiles, column_tile = blockIdx.x - number * a.column_tiles;
  GroupTile<1> found;
  if (!locate_tile(a.rows, number, locate, a.status, found) || a.columns == 0) return;

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if (thread == 0) place = found;
  const int p = lane % 8, r = lane / 8;
  const std::int64_t first_column = std::int64_t{column_tile} * kPieceColumns;
  const std::int64_t column = first_column + warp * 64 + p * 8;
  // Of the lane; the columns are a multiple of 8.
  const int own_rows = column < a.columns ? static_cast<int>(min(found.rows - found.tile * kBlock, 32u)) - r * 8 : 0;
  const std::int64_t begin = (std::int64_t{found.first_row} + found.tile * kBlock + r * 8) * a.columns + column;

  std::uint32_t word[8][4];
  {
    const auto* x = static_cast<const unsigned char*>(a.x) + begin * 2;
#pragma unroll
    for (int i = 0; i < 8; ++i, advance(x, a.columns * 2)) {
      const uint4 vector = i < own_rows ? *reinterpret_cast<const uint4*>(x) : uint4{0, 0, 0, 0};
      word[i][0] = vector.x, word[i][1] = vector.y, word[i][2] = vector.z, word[i][3] = vector.w;
    }
  }
  const auto codes_of = [&](int i, const auto& multiplier) {
    float product[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) product[c] = multiply_with_zero(E::widen(word[i][c / 2], c % 2), multiplier(c), a.zero);
    return uint2{encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
                 encode_fp8x4<F>(product[4], product[5], product[6], product[7])};
  };

  if constexpr (kParts & kRowPart) {
    std::uint32_t pair[4];  // of rows 2q and 2q + 1
    row_amaxes_of_lane<X>(word, pair);
    const bool upper2 = lane & 2, upper1 = lane & 1;
    pair[0] = keep_half<X>(pair[0], pair[2], upper2, 2);
    pair[1] = keep_half<X>(pair[1], pair[3], upper2, 2);
    std::uint32_t multipliers;
    const std::uint32_t scales = scales_of_pair<X, F>(keep_half<X>(pair[0], pair[1], upper1, 1), multipliers);
    auto* const to = reinterpret_cast<std::uint8_t*>(row_scales) + (r * 8 + lane % 4 * 2) * 16 + warp * 2 + p / 4;
    to[0] = static_cast<std::uint8_t>(scales);
    to[16] = static_cast<std::uint8_t>(scales >> 8);
    if (a.row_data != nullptr) store_block_row_codes(a, begin, own_rows, lane, multipliers, codes_of);
  }

  quantize_block_columns<X, F>(a, word, lane, warp, p, r, own_rows, begin, codes_of, column_scales);
  store_block_scales<kParts>(a, place, found, first_column, thread, row_scales, column_scales);
}

template <Format X, Format F>
void launch_blocks(const Mxfp8Tiles& tiles, cudaStream_t stream) {
  const bool rows = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  const auto kernel = rows ? quantize_blocks<X, F, kRowPart | kColumnPart> : quantize_blocks<X, F, kColumnPart>;
  launch_kernel("mxfp8: quantize_blocks", kernel, tiles.blocks, kPieceThreads, 0, stream, tiles);
}

#endif  // __CUDACC__

}  // namespace assay::device::mxfp8
