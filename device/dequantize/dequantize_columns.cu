// Values of transposed codes: columnwise tensors of every recipe but MXFP8.
//
//   traffic   1 B read (NVFP4: half) and 2 or 4 B written per element, and the scales
//   ceiling   HBM
//   layout    tiles of 128 x 128, read by 16 B of a column at any alignment, turned in shared memory; 256 or 512 B of
//             a row stored at a time. Factors of 1x128 and NVFP4 are made once per tile, in shared memory
//
//     loaded, FP8: 8 threads a column (NVFP4: 4)     stored: 8 columns a thread, 16 threads a row (f32: 4, 32)
//
//                  column 0   1     2   ...                          columns 0 .. 7   8 .. 15   ...   120 .. 127
//     rows  0- 15  thread 0   8    16                  rows 0 .. 3   thread  0        1               15
//     rows 16- 31         1   9    17                  rows 4 .. 7          16        17              31
//     ...                                              ...
//     rows 112-127        7  15    23                  rows 60 .. 63       240        241             255
//
//             loads are aligned to 16 B, so a column may need one more, which thread c makes for column c. A word of a
//             column has 4 rows (NVFP4: 8), which one thread stores
//   order     each value is computed by itself
//   matches   reference/recipes/dequantize.h

#include <cuda_runtime.h>

#include <cstdint>

#include "device/dequantize/scales.cuh"
#include "device/dequantize/values.cuh"
#include "device/layout/window_tiles.cuh"

namespace assay::device::dequantization {
namespace {

// Transposed data: columns of a group lie one after the other, and begin at any byte. A block turns 128 rows of 128
// columns in shared memory: it is loaded by whole vectors of 16 bytes, and shifted into place when rows are read.
constexpr unsigned kTurnedColumns = 128;

// A tile in shared memory: how its codes and factors are placed.
template <Recipe kRecipe, Format kData, Format kOut>
struct TurnedTile {
  static constexpr unsigned kBits = kData == Format::e2m1 ? 4 : 8, kWordRows = 32 / kBits, kWords = kWindowRows / kWordRows;
  static constexpr unsigned kVectors = kWords / 4, kValues = kLaneValues<kOut>, kLanes = kTurnedColumns / kValues;
  static constexpr unsigned kTurns = kTurnedColumns * kVectors / kThreads;  // loads of a thread, and one more
  // Neither threads that write (8 vectors of 4 columns) nor those that read (a word of 8 or 4 columns each) have bank conflicts.
  static constexpr unsigned kPitch = kWords + 5, kSkew = kValues == 8 ? 2 : 1;
  static __device__ __forceinline__ unsigned place(unsigned column) { return column * kPitch + column / kValues * kSkew; }
  // A scale of each column and 128 rows (1x128) or 16 rows (NVFP4); otherwise one.
  static constexpr unsigned kScaleRows = kRecipe == Recipe::nvfp4 ? 16 : 128, kScaleBlocks = kWindowRows / kScaleRows;
  static constexpr bool kOneScale = kRecipe == Recipe::tensor_current || kRecipe == Recipe::block_128x128;
  static constexpr unsigned kFactorPitch = kTurnedColumns + 4;
};

// The vectors of a thread, numbered by `turn`; zeros if one is not needed or crosses an end of the data.
template <int kCount, class IsWanted, class IsInside, class Address>
__device__ __forceinline__ void load_vectors(uint4 (&vectors)[kCount], const IsWanted& is_wanted, const IsInside& is_inside,
                                             const Address& address) {
#pragma unroll
  for (unsigned turn = 0; turn < kCount; ++turn) {
    vectors[turn] = make_uint4(0, 0, 0, 0);
    if (is_wanted(turn) && is_inside(address(turn))) {
      vectors[turn] = __ldcs(reinterpret_cast<const uint4*>(address(turn)));
    }
  }
}

// The factors of a tile's columns, to shared memory.
template <class Tile, class ScalesOfGroup>
__device__ __forceinline__ void store_factors(const ScalesOfGroup& scales, unsigned first_row, unsigned rows,
                                              std::int64_t first_column, unsigned columns, float* factor_of) {
#pragma unroll
  for (unsigned k = threadIdx.x; k < Tile::kScaleBlocks * kTurnedColumns; k += kThreads) {
    const unsigned block = k % Tile::kScaleBlocks, column = k / Tile::kScaleBlocks;
    if (column < columns && block * Tile::kScaleRows < rows) {
      factor_of[block * Tile::kFactorPitch + column] =
          scales.of(first_row + block * Tile::kScaleRows, static_cast<std::uint32_t>(first_column) + column);
    }
  }
}

// The vectors of a thread to shared memory; one that crosses an end of the data is loaded here, by bytes.
template <int kCount, class IsWanted, class IsInside, class Address, class PlaceOf>
__device__ __forceinline__ void turn_vectors(const uint4 (&vectors)[kCount], const std::uint8_t* data,
                                             const std::uint8_t* data_end, const IsWanted& is_wanted, const IsInside& is_inside,
                                             const Address& address, const PlaceOf& place_of) {
#pragma unroll
  for (unsigned turn = 0; turn < kCount; ++turn) {
    if (!is_wanted(turn)) continue;
    std::uint32_t* const to = place_of(turn);
    to[0] = vectors[turn].x, to[1] = vectors[turn].y, to[2] = vectors[turn].z, to[3] = vectors[turn].w;
    const std::uint8_t* const from = address(turn);
    if (!is_inside(from)) {
#pragma unroll 1
      for (unsigned e = 0; e < 16; ++e) {
        if (from + e >= data && from + e < data_end) reinterpret_cast<std::uint8_t*>(to)[e] = __ldg(from + e);
      }
    }
  }
}

// The values of row r of the rows that a word of each column holds.
template <class Tile, Format kData>
__device__ __forceinline__ void decode_row(const std::uint32_t (&words)[Tile::kValues], unsigned r,
                                           float (&values)[Tile::kValues]) {
#pragma unroll
  for (unsigned v = 0; v < Tile::kValues; v += 2) {
    float pair[2];
    if constexpr (Tile::kBits == 8) {
      decode_pair<kData>(__byte_perm(words[v], words[v + 1], r | (r + 4) << 4), pair);
    } else {
      pair[0] = decode_e2m1(words[v] >> 4 * r & 0xFu);
      pair[1] = decode_e2m1(words[v + 1] >> 4 * r & 0xFu);
    }
    values[v] = pair[0], values[v + 1] = pair[1];
  }
}

// The rows are stored in the body: a function for them changes the machine code.
template <Recipe kRecipe, Format kData, Format kOut>
__global__ void __launch_bounds__(kThreads, kDequantizeBlocks<kRecipe, Direction::columnwise>)
    dequantize_columns(const DequantizeCall call, unsigned across, float nvfp4_factor) {
  using Tile = TurnedTile<kRecipe, kData, kOut>;
  constexpr unsigned kBits = Tile::kBits, kVectors = Tile::kVectors, kTurns = Tile::kTurns;
  __shared__ std::uint32_t turned[kTurnedColumns * Tile::kPitch + Tile::kLanes * Tile::kSkew];
  alignas(16) __shared__ float factor_of[Tile::kOneScale ? 1 : Tile::kScaleBlocks * Tile::kFactorPitch];
  __shared__ WindowTiles<typename LayoutOf<kRecipe, Direction::columnwise>::Type::Measure> windows;
  if (kRecipe == Recipe::nvfp4 && has_odd_split(call)) return;
  const unsigned window = blockIdx.x / across;
  const unsigned count = windows.find(call.rows, window, call.status);
  const std::int64_t first_column = std::int64_t{blockIdx.x - window * across} * kTurnedColumns;
  const auto columns = static_cast<unsigned>(min(call.columns - first_column, std::int64_t{kTurnedColumns}));
  const auto* const data = static_cast<const std::uint8_t*>(call.data);
  const std::uint8_t* const data_end = data + call.rows.capacity * call.columns * kBits / 8;

  for (unsigned i = 0; i < count; ++i) {
    const WindowTile tile = windows.list[i];
    const Scales<kRecipe, Direction::columnwise> scales(call, tile.group, tile.rows, tile.before, nvfp4_factor);
    const unsigned first_row = tile.tile * kWindowRows, rows = min(tile.rows - first_row, static_cast<unsigned>(kWindowRows));
    const std::int64_t group = std::int64_t{tile.first_row} * call.columns;
    if (i != 0) __syncthreads();

    // Column c begins at top + c * step, `past(c)` bytes after a vector does.
    const std::uint8_t* const top = data + (group + first_column * tile.rows + first_row) * kBits / 8;
    const std::uint32_t step = tile.rows * kBits / 8, bytes = rows * kBits / 8,
                        past_of_top = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(top) % 16);
    const auto past = [&](unsigned column) { return (past_of_top + column * step) % 16; };
    uint4 vectors[kTurns + 1];
    const auto column_of = [&](unsigned turn) {
      return turn < kTurns ? (threadIdx.x + turn * kThreads) / kVectors : threadIdx.x;
    };
    const auto vector_of = [&](unsigned turn) { return turn < kTurns ? threadIdx.x % kVectors : kVectors; };
    const auto is_wanted = [&](unsigned turn) {
      return column_of(turn) < columns && 16 * vector_of(turn) < past(column_of(turn)) + bytes;
    };
    const auto address = [&](unsigned turn) {
      const unsigned column = column_of(turn);
      return top + std::int64_t{column} * step - past(column) + 16 * vector_of(turn);
    };
    const auto is_inside = [&](const std::uint8_t* from) { return from >= data && from + 16 <= data_end; };
    load_vectors(vectors, is_wanted, is_inside, address);
    const auto place_of = [&](unsigned turn) { return turned + Tile::place(column_of(turn)) + 4 * vector_of(turn); };
    float one_factor = 0;
    if constexpr (Tile::kOneScale) {
      one_factor = scales.of(first_row, static_cast<std::uint32_t>(first_column));
    } else {
      store_factors<Tile>(scales, first_row, rows, first_column, columns, factor_of);
    }
    turn_vectors(vectors, data, data_end, is_wanted, is_inside, address, place_of);
    __syncthreads();

    const bool whole_words = past_of_top % 4 == 0 && step % 4 == 0;
    constexpr unsigned kValues = Tile::kValues, kWordRows = Tile::kWordRows;
#pragma unroll
    for (unsigned k = threadIdx.x; k < Tile::kLanes * Tile::kWords; k += kThreads) {
      const unsigned column = k % Tile::kLanes * kValues, word = k / Tile::kLanes, first_of_word = word * kWordRows;
      if (column >= columns || first_of_word >= rows) continue;
      std::uint32_t words[kValues];
      float factors[kValues];
#pragma unroll
      for (unsigned v = 0; v < kValues; ++v) {
        const unsigned skipped = past(column + v);
        const std::uint32_t* const from = turned + Tile::place(column + v) + skipped / 4 + word;
        words[v] = from[0];
        if (!whole_words) words[v] = __funnelshift_r(words[v], from[1], 8 * (skipped % 4));
        factors[v] = Tile::kOneScale ? one_factor : factor_of[first_of_word / Tile::kScaleRows * Tile::kFactorPitch + column + v];
      }
      const std::int64_t at = group + std::int64_t{first_row + first_of_word} * call.columns + first_column + column;
#pragma unroll
      for (unsigned r = 0; r < kWordRows; ++r) {
        if (first_of_word + r >= rows) break;
        float values[kValues];
        decode_row<Tile, kData>(words, r, values);
        store_values<kOut>(call.output, at + r * call.columns, values, factors);
      }
    }
  }
}

template <Recipe kRecipe>
void launch(const DequantizeCall& call, Stream stream) {
  with_formats<kRecipe>(call, [&]<Format kData, Format kOut>() {
    start_blocks(dequantize_columns<kRecipe, kData, kOut>, "dequantize: dequantize_columns", call, window_count(call.rows),
                 kTurnedColumns, stream);
  });
}

}  // namespace

void launch_columns(const DequantizeCall& call, Stream stream) {
  switch (call.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: return launch<Recipe::tensor_current>(call, stream);
    case Recipe::block_1x128: return launch<Recipe::block_1x128>(call, stream);
    case Recipe::block_128x128: return launch<Recipe::block_128x128>(call, stream);
    case Recipe::nvfp4: return launch<Recipe::nvfp4>(call, stream);
    case Recipe::mxfp8: return launch_rows(call, stream);  // not transposed
  }
}

}  // namespace assay::device::dequantization
