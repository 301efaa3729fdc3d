#pragma once
// FP8 with one scale for each group, tiles of 128 rows: the part of a tile that a thread holds, and column sums.

#include <cuda_runtime.h>

#include "device/quantize/per_tensor/cast.cuh"
#include "device/support/launch.cuh"
#include "device/support/launch_check.h"

namespace assay::device::per_tensor {

constexpr int kTile = 128;

// A thread has two patches of 4 rows of one vector.
template <Format kX>
constexpr unsigned kTileColumns = 16 * kSpan<kX>;
constexpr unsigned kPatches = 2;

__device__ inline unsigned patch_row(unsigned h) { return (threadIdx.x + h * blockDim.x) / 16 * 4; }
template <Format kX>
__device__ unsigned patch_column() {
  return threadIdx.x % 16 * kSpan<kX>;
}

// Rows `low` to `high` of the patches' rows; `first` is the element of row 0 in the tile's first column.
template <Format kX, bool kVectors>
__device__ void load_patches(const CastArguments& a, std::int64_t first, unsigned low, unsigned high, unsigned columns,
                             uint4 (&x)[kPatches][4]) {
  const unsigned column = patch_column<kX>();
#pragma unroll
  for (unsigned h = 0; h < kPatches; ++h) {
    const unsigned row = patch_row(h);
    const std::int64_t corner = first + row * a.columns + column;
#pragma unroll
    for (unsigned q = 0; q < 4; ++q) {
      x[h][q] = make_uint4(0, 0, 0, 0);
      const bool present = row + q >= low && row + q < high;
      if constexpr (kVectors) {
        if (present && column < columns) {
          x[h][q] =
              *reinterpret_cast<const uint4*>(static_cast<const char*>(a.x) + (corner + q * a.columns) * Element<kX>::kBytes);
        }
      } else {
        std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
        for (unsigned e = 0; e < kSpan<kX>; ++e) {
          if (present && column + e < columns) {
            const std::uint32_t bits = load_element<kX>(a.x, corner + q * a.columns + e);
            words[e / Element<kX>::kPerWord] |= bits << e % Element<kX>::kPerWord * 16;
          }
        }
        x[h][q] = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }
}

// Codes of one row of a patch, four to a word, to memory.
template <Format kX, bool kVectors>
__device__ void store_row(std::uint8_t* to, const std::uint32_t (&codes)[kSpan<kX> / 4], unsigned columns) {
  if constexpr (!kVectors) {
#pragma unroll
    for (unsigned e = 0; e < kSpan<kX>; ++e) {
      if (e < columns) to[e] = static_cast<std::uint8_t>(codes[e / 4] >> e % 4 * 8);
    }
  } else if constexpr (kX == Format::f32) {
    *reinterpret_cast<std::uint32_t*>(to) = codes[0];
  } else {
    *reinterpret_cast<uint2*>(to) = make_uint2(codes[0], codes[1]);
  }
}

// Four rows of four codes, a row per word, to four columns, a column per word.
__device__ inline void transpose_four(const std::uint32_t (&row)[4], std::uint32_t (&column)[4]) {
  const std::uint32_t a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[0], row[1], 0x7362);
  const std::uint32_t c = __byte_perm(row[2], row[3], 0x5140), d = __byte_perm(row[2], row[3], 0x7362);
  column[0] = __byte_perm(a, c, 0x5410);
  column[1] = __byte_perm(a, c, 0x7632);
  column[2] = __byte_perm(b, d, 0x5410);
  column[3] = __byte_perm(b, d, 0x7632);
}

constexpr unsigned kSumThreads = 128;  // a word of columns and a half of the rows each

// The unchanged tile. Rows from 64 on have 16 words exchanged with the next 16, so that the halves of a warp, which read the same
// columns of rows 64 apart, find 32 banks.
struct StagedTile {
  uint4 vector[kTile][16];
  __device__ uint4& at(unsigned row, unsigned v) { return vector[row][row < 64 ? v : v ^ 4]; }
};

// Column sums: a thread adds 64 rows of one word's columns, one row after the other. Rows past the end are +0, which
// changes no sum: it begins with +0 and so is never -0. `number`: of the tile of 128 rows, through all groups.
template <Format kX, bool kVectors>
__device__ void sum_columns(const StagedTile& staged, const CastArguments& a, std::uint32_t number, std::int64_t first_column) {
  const unsigned lane = threadIdx.x % 32, half = lane / 16, word_column = threadIdx.x / 32 * 16 + lane % 16;
  constexpr unsigned kWords = 64;  // of a row
  const auto* const words = reinterpret_cast<const std::uint32_t*>(staged.vector[64 * half]) + (word_column ^ half * 16);
  float sums[2] = {0, 0};
#pragma unroll 16
  for (unsigned r = 0; r < 64; ++r) {
    const std::uint32_t word = words[r * kWords];
#pragma unroll
    for (unsigned e = 0; e < Element<kX>::kPerWord; ++e) sums[e] = add(sums[e], Element<kX>::widen(word, e));
  }
#pragma unroll
  for (unsigned e = 0; e < Element<kX>::kPerWord; ++e)
    sums[e] = add(sums[e], __shfl_sync(0xFFFFFFFFu, sums[e], static_cast<int>(lane % 16 + 16)));
  const std::int64_t column = first_column + Element<kX>::kPerWord * word_column;
  float* const to = a.tile_sums + number * a.columns + column;
  if (half != 0 || column >= a.columns) return;
  if constexpr (kVectors && Element<kX>::kPerWord == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(bits_of_float(sums[0]), bits_of_float(sums[1]));
  } else {
#pragma unroll
    for (unsigned e = 0; e < Element<kX>::kPerWord; ++e) {
      if (column + e < a.columns) to[e] = sums[e];
    }
  }
}

// A block for each 128 rows of the buffer and strip of columns.
template <Format kX, class Kernel>
void start_blocks(Kernel kernel, const char* name, const CastArguments& a, int threads, int shared_bytes, Stream stream) {
  const std::int64_t across = (a.columns + kTileColumns<kX> - 1) / kTileColumns<kX>;
  const std::int64_t blocks = (a.rows.capacity + kTile - 1) / kTile * across;
  if (blocks >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more tiles than 2^31");
  if (shared_bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), "cudaFuncSetAttribute");
  }
  launch_kernel(name, kernel, static_cast<unsigned>(blocks), threads, shared_bytes, stream, a,
                static_cast<std::uint32_t>(across));
}

// launch<kX, kOut, kSums, kVectors>() for the call.
template <class Launch>
void with_parts(Format x_type, Format output, const CastArguments& a, const Launch& launch) {
  with_types(x_type, output, [&]<Format kX, Format kOut>() {
    if (a.tile_sums != nullptr) {
      a.vectors ? launch.template operator()<kX, kOut, true, true>() : launch.template operator()<kX, kOut, true, false>();
    } else {
      a.vectors ? launch.template operator()<kX, kOut, false, true>() : launch.template operator()<kX, kOut, false, false>();
    }
  });
}

}  // namespace assay::device::per_tensor
