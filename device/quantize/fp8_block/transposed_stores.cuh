#pragma once
// FP8 block scaling, transposed codes of a tile from shared memory to global memory.

#include <cstdint>

#include "device/layout/column_layout.h"
#include "device/quantize/fp8_block/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// Codes in shared memory, [columns][kRows], as many columns as rows: of column c, the 8 rows of chunk k lie at chunk k ^ (c / 8).
template <int kRows = kBlock>
__device__ __forceinline__ int code_chunk(int column, int chunk) {
  return column * (kRows / 8) + (chunk ^ (column >> 3));
}

// The `rows` x `columns` codes that are there to memory where each column begins and ends at a multiple of 16 bytes: 16 bytes a thread.
template <int kRows, int kColumns, int kThreadsOfBlock>
__device__ __forceinline__ void store_columns_aligned(const unsigned char* shared, std::uint8_t* to, std::uint32_t pitch,
                                                      int rows, int columns) {
  constexpr int kVectors = kRows / 16, kAtOnce = kThreadsOfBlock / kVectors;
  const int thread = static_cast<int>(threadIdx.x), vector = thread % kVectors;
#pragma unroll
  for (int pass = 0; pass < kColumns / kAtOnce; ++pass) {
    const int column = pass * kAtOnce + thread / kVectors, exchange = column >> 3;
    uint4 v = reinterpret_cast<const uint4*>(shared)[column * kVectors + (vector ^ exchange >> 1)];
    if (exchange & 1) v = uint4{v.z, v.w, v.x, v.y};
    if (column < columns && vector * 16 < rows) {
      reinterpret_cast<uint4*>(to + static_cast<std::int64_t>(column) * pitch)[vector] = v;
    }
  }
}

// Columns of codes to memory that allows only bytes: whole aligned 8 bytes where there are, 16 lanes a column, each
// put together from two neighbouring chunks; the bytes at both ends one by one, 8 lanes a column. `to` is the tile's
// first code.
__device__ __forceinline__ void store_columns_unaligned(const unsigned char* shared, std::uint8_t* to, std::uint32_t pitch,
                                                        int rows, int columns, int thread) {
  const auto* chunks = reinterpret_cast<const uint2*>(shared);
  const auto past_multiple = [&](const std::uint8_t* column) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(column) & 7);
  };

  const int j = thread % 16;
  std::uint8_t* destination = to + static_cast<std::int64_t>(thread / 16) * pitch;
#pragma unroll 4
  for (int column = thread / 16; column < columns; column += 16, destination += std::int64_t{pitch} * 16) {
    const int past = past_multiple(destination), first = 8 * j - past;  // row of the lowest of this lane's 8 bytes
    const uint2 own = chunks[code_chunk(column, j)], before = chunks[code_chunk(column, max(j - 1, 0))];
    const bool far = past >= 4;
    const std::uint32_t low = far ? before.x : before.y, middle = far ? before.y : own.x, high = far ? own.x : own.y;
    const uint2 codes = {__funnelshift_l(low, middle, 8 * past), __funnelshift_l(middle, high, 8 * past)};  // modulo 32
    if (first >= 0 && first + 8 <= rows) *reinterpret_cast<uint2*>(destination + first) = codes;
  }

  const int k = thread % 8;
  destination = to + static_cast<std::int64_t>(thread / 8) * pitch;
#pragma unroll 4
  for (int column = thread / 8; column < columns; column += 32, destination += std::int64_t{pitch} * 32) {
    const int past = past_multiple(destination), end = rows + past;
    const int head = k - past, tail = (end & ~7) + k - past;
    const auto store = [&](int row) { destination[row] = shared[code_chunk(column, row >> 3) * 8 + (row & 7)]; };
    if (past != 0 && head >= 0 && head < rows) store(head);
    if (tail < rows && (past == 0 || end >= 8)) store(tail);
  }
}

// Where the columns of codes of a tile's group lie.
__device__ __forceinline__ GroupColumns columns_of(const Fp8BlockTiles& a, const WindowTile& tile) {
  return a.aligned_columns ? aligned_columns(tile.group, tile.first_row, tile.rows) : dense_columns(tile.first_row, tile.rows);
}

// Address of the codes of a tile's first column.
__device__ __forceinline__ std::uint8_t* column_codes_of(const Fp8BlockTiles& a, const WindowTile& tile,
                                                         std::uint32_t column_tile, const GroupColumns& group) {
  return a.column_data + std::int64_t{group.before} * a.columns + std::int64_t{column_tile} * kBlock * group.pitch +
         std::int64_t{tile.tile} * kBlock;
}

__device__ __forceinline__ void store_columns(const Fp8BlockTiles& a, const WindowTile& tile, std::uint32_t column_tile,
                                              const unsigned char* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = static_cast<int>(min(tile.rows - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
  const int columns = static_cast<int>(min(a.columns - std::int64_t{column_tile} * kBlock, std::int64_t{kBlock}));
  const GroupColumns group = columns_of(a, tile);
  std::uint8_t* const to = column_codes_of(a, tile, column_tile, group);
  if (((reinterpret_cast<std::uintptr_t>(to) | group.pitch) & 15) != 0) {
    return store_columns_unaligned(shared, to, group.pitch, rows, columns, thread);
  }
  store_columns_aligned<kBlock, kBlock, kThreads>(shared, to, group.pitch, rows, columns);
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
