// FP8 with one scale, one tensor by tiles of 128 x 128 (f32: 64 columns): codes of both directions, column sums, the
// amax.
//
//   traffic   both directions: 2 B read + 2 B written per bf16 element; x is read once. dbias adds 4 B written per 128
//   ceiling   HBM
//   layout    a thread holds one vector of 16 B of 8 rows: the rowwise codes leave from registers, the transposed ones
//             through shared memory, 128 B of a column at a time. With column sums x itself is staged too
//   occupancy 4 blocks per SM, each with all of its tile's loads in flight
//   order     column sums have the order of dbias.h
//   matches   reference/recipes/per_tensor.h

#include <cuda_runtime.h>

#include "device/quantize/per_tensor/patches.cuh"
#include "device/support/noop.cuh"
#include "device/support/vectors.h"

namespace assay::device::per_tensor {
namespace {

constexpr int kThreads = 256;

// The codes of a tile, transposed: 32 words of 4 rows for each column. The low bits of a word's place are exchanged (xor) by its
// column's vector, so that the threads of a warp that write one word of many vectors, as well as those that read one column, find
// 32 banks.
template <Format kX>
struct TransposedCodes {
  alignas(16) std::uint32_t word[kTileColumns<kX>][kTile / 4];
  static __device__ unsigned twist(unsigned column) { return 2 * (column / kSpan<kX> % 16); }
  __device__ std::uint32_t& at(unsigned column, unsigned row) { return word[column][row / 4 ^ twist(column)]; }
};

template <Format kX>
struct SharedTile {
  TransposedCodes<kX> codes;
};
ASSAY_HOLDS_VECTORS(uint4, SharedTile<Format::bf16>, codes);
ASSAY_HOLDS_VECTORS(uint4, SharedTile<Format::f32>, codes);
template <Format kX>
struct SharedTileWithSums : SharedTile<kX> {
  StagedTile staged;
};

// One tensor whose columns, if they are requested, begin at whole vectors: a block has a tile.
// kVectors: a row of a tile begins at a whole vector of x and, if there are any, of rowwise codes.
template <Format kX, Format kOut, bool kSums, bool kVectors>
__global__ void __launch_bounds__(kThreads, 4) cast_tiles(const CastArguments a, const std::uint32_t across) {
  if (is_skipped(a.noop)) return;
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<SharedTileWithSums<kX>*>(dynamic_shared);
  if (blockIdx.x == 0) write_scales(a.scales, 1, a.scale, a.scale_inv);

  const std::uint32_t index = a.reversed ? gridDim.x - 1 - blockIdx.x : blockIdx.x, down = index / across;
  const std::int64_t first_row = std::int64_t{down} * kTile,
                     first_column = std::int64_t{index - down * across} * kTileColumns<kX>;
  const auto rows = static_cast<unsigned>(min(a.rows.capacity - first_row, std::int64_t{kTile}));
  const auto columns = static_cast<unsigned>(min(a.columns - first_column, std::int64_t{kTileColumns<kX>}));
  const std::int64_t first = first_row * a.columns + first_column;

  const std::uint32_t scale_read = a.scales.read(0);
  uint4 x[kPatches][4];
  load_patches<kX, kVectors>(a, first, 0, rows, columns, x);
  std::uint32_t gathered = 0;
  const float scale = a.scales.scale(scale_read);
  const unsigned column = patch_column<kX>();
#pragma unroll
  for (unsigned h = 0; h < kPatches; ++h) {
    const unsigned row = patch_row(h);
    constexpr unsigned kFours = kSpan<kX> / 4;
    std::uint32_t by_row[kFours][4];
#pragma unroll
    for (unsigned q = 0; q < 4; ++q) {
      std::uint32_t of_row[kFours];
#pragma unroll
      for (unsigned f = 0; f < kFours; ++f) of_row[f] = by_row[f][q] = encode_four<kX, kOut>(x[h][q], 4 * f, scale, a.zero);
      if constexpr (kSums) shared.staged.at(row + q, threadIdx.x % 16) = x[h][q];
      if (a.amax_bits != nullptr) gathered = accumulate_absmax_vector<kX>(gathered, x[h][q]);
      if (a.rowwise != nullptr && row + q < rows && column < columns) {
        store_row<kX, kVectors>(a.rowwise + first + (row + q) * a.columns + column, of_row, columns - column);
      }
    }
    if (a.columnwise != nullptr) {
#pragma unroll
      for (unsigned f = 0; f < kFours; ++f) {
        std::uint32_t by_column[4];
        transpose_four(by_row[f], by_column);
#pragma unroll
        for (unsigned c = 0; c < 4; ++c) shared.codes.at(column + 4 * f + c, row) = by_column[c];
      }
    }
  }
  __syncthreads();

  if constexpr (kSums) {
    if (threadIdx.x < kSumThreads) sum_columns<kX, kVectors>(shared.staged, a, down, first_column);
  }
  if (a.columnwise != nullptr) {
    const unsigned v = threadIdx.x % 8;  // 16 rows each
    std::uint8_t* const to = a.columnwise + first_column * a.rows.capacity + first_row + 16 * v;
#pragma unroll
    for (unsigned i = 0; i < kTileColumns<kX> * 8 / kThreads; ++i) {
      const unsigned own = threadIdx.x / 8 + i * (kThreads / 8), twist = TransposedCodes<kX>::twist(own);
      uint4 vector = reinterpret_cast<const uint4*>(shared.codes.word[own])[v ^ twist / 4];
      if (twist % 4 != 0) vector = make_uint4(vector.z, vector.w, vector.x, vector.y);
      if (own < columns && 16 * v < rows) *reinterpret_cast<uint4*>(to + own * a.rows.capacity) = vector;
    }
  }
  if (a.amax_bits != nullptr) accumulate_amax<kX>(a.amax_bits, gathered);
}

}  // namespace

void launch_tiles(Format x_type, Format output, const CastArguments& a, Stream stream) {
  with_parts(x_type, output, a, [&]<Format kX, Format kOut, bool kSums, bool kVectors>() {
    start_blocks<kX>(cast_tiles<kX, kOut, kSums, kVectors>, "per_tensor: cast_tiles", a, kThreads,
                     kSums ? sizeof(SharedTileWithSums<kX>) : sizeof(SharedTile<kX>), stream);
  });
}

}  // namespace assay::device::per_tensor
