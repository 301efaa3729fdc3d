#pragma once
// NVFP4, one tile of 128 x 128 elements per block of threads: x is read once, and all requested outputs come
// from that one reading, once the amax of the group is known. It takes every call; rows of 16-bit elements alone,
// without 2-D tiles, 4over6 and unaligned addresses, have a faster kernel (quantize_rows.cuh).
//
//   traffic   16-bit x: 2 B read, 1/2 B written per element and direction, 1 B of scale per 16:  2.56 B/element for
//             one direction, 3.13 for both; and 2 B more where the amax has to be found first
//   bound     SM90 has no conversion to E2M1. Two codes are cut from f16 by some seven instructions (cut_codes.cuh) where
//             the group and the largest value of each block allow it, as they nearly always do; else a code takes some
//             eight (e2m1_codes.cuh). With amax, scale and transposition 23 instructions are issued for an element in both
//             directions, which alone takes 1.1 times as long as HBM on an H200, and 0.75 on an H100. There memory is the
//             bound: compact scales are 8 bytes of a line each, and cost up to a sixth of the time beside swizzled ones.
//             Ragged groups have less: columns that begin at any byte take more instructions to store, and the last tile
//             of a group takes as many as a full one
//   layout    8 warps, each two squares of 16 rows x 64 columns, one after the other: a tile of 64 columns has 26
//             instructions an element, and twice as many stores of scales. Of a square a lane holds rows 4q ... 4q + 3 and
//             columns 8g ... 8g + 7 (q = lane % 4, g = lane / 4): a row's block lies in 2 lanes, a column's in 4. These are also
//             the elements that the lane holds of an operand and of the result of mma.m16n8k16, if the 16 rows of the
//             operand are numbered to suit: so the Hadamard transform is 8 instructions on registers, in place.
//   codes     eight per word; words of rows and halves of words of columns go through shared memory and leave it as 64 B
//             of a row, 64 B of a (transposed) column. A column of a ragged group begins at any byte: whole words are
//             then put together from two, and only the ends are stored by bytes.
//   multipliers  c of nvfp4.h from the scale's code and the group's 1/S, by the lanes that made the scale
//   random    bytes of stochastic rounding are read, or drawn into shared memory by all threads (random_draws.cuh): 4 blocks of
//             the generator a thread and square for both directions, some 90 instructions each
//   order     amax is a maximum of magnitudes: no order can change it. Errors of 4over6 are summed as four_over_six.h
//             says, from lane to lane.
//   matches   reference/recipes/nvfp4.h
//   files     in the order of the work: thread_layout.cuh, which tile; load_patch.cuh, x read; hadamard.cuh;
//             quantize_square.cuh, scales and codes (of amax.cuh, scales.cuh, four_over_six.cuh,
//             e2m1_codes.cuh, cut_codes.cuh); stores.cuh
//
// A tile is never shared between groups. An earlier launch has stored the group of each tile (nvfp4.cu). Rows and columns past
// the end of a group or of the matrix are held as +0, which changes no amax, and whose scale is 0, the padding of swizzled
// scales.

#include <cstdint>

#include "device/quantize/nvfp4/call.h"
#include "device/quantize/nvfp4/four_over_six.cuh"
#include "device/quantize/nvfp4/hadamard.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/quantize_square.cuh"
#include "device/quantize/nvfp4/scales.cuh"
#include "device/quantize/nvfp4/stores.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"
#include "device/support/early_launch.cuh"
#include "device/support/noop.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

template <bool kFourOverSix, bool kDrawn>
struct Shared {
  Stage stage;
};
template <>
struct Shared<true, false> {
  Stage stage;
  Tables row_tables, column_tables;
};
template <>
struct Shared<false, true> {
  Stage stage;
  DrawnWords drawn;
};

// What the group of a tile draws: its state is read here, when the kernel runs.
__device__ __forceinline__ MatrixDraws draws_of(const Nvfp4Tiles& a, std::uint32_t group) {
  const std::int64_t *const state = a.draw_state + 2 * std::size_t{group}, seed = __ldg(state), offset = __ldg(state + 1);
  return {a.draws,  a.draws_rowwise, a.draws_columnwise, static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(offset),
          a.columns};
}

template <Format X, bool kHadamard, Rounding kRounding, bool kFourOverSix, bool kAligned, unsigned kParts>
__global__ void __launch_bounds__(kThreads, kFourOverSix || Element<X>::kBytes == 4       ? 2
                                            : kHadamard && !ASSAY_NVFP4_MMA               ? 2
                                            : kHadamard && kRounding != Rounding::nearest ? 3
                                            : kHadamard || kRounding != Rounding::nearest ? 4
                                                                                          : kBlocksPerSm)
    quantize_tiles(const __grid_constant__ Nvfp4Tiles a) {
  constexpr bool kDrawn = kRounding == Rounding::drawn;
  wait_for_earlier_kernels();
  const bool skipped = is_skipped(a.skip);
  __shared__ Shared<kFourOverSix, kDrawn> shared;
  Tile at;
  if (!at.find(a, a.reversed ? a.blocks - 1 - blockIdx.x : blockIdx.x, skipped)) return;
  const Lane lane;
  const bool with_rows = (kParts & kRowPart) && (a.row_data != nullptr || a.row_scale != nullptr);
  const bool with_columns = a.column_data != nullptr || a.column_scale != nullptr;
  static_assert(!kFourOverSix || kThreads == 2 * kTile);
  const Tables *row_tables = nullptr, *column_tables = nullptr;
  if constexpr (kFourOverSix) {
    const int thread = static_cast<int>(threadIdx.x);
    row_tables = &shared.row_tables, column_tables = &shared.column_tables;
    if (thread < kTile) {
      if (with_rows) shared.row_tables.fill(load_scaling(a.row_scaling, at.group), a.e4m3_max, thread);
    } else {
      if (with_columns) shared.column_tables.fill(load_scaling(a.column_scaling, at.group), a.e4m3_max, thread - kTile);
    }
    __syncthreads();
  }
#pragma unroll 1
  for (int square = 0; square < kSquares; ++square) {
    const Place place = at.square(lane, square);
    Patch<X> patch;
    load_patch<X, kAligned>(patch, static_cast<const unsigned char*>(a.x) + at.begin(place, a.columns) * Element<X>::kBytes,
                            a.columns, place.rows_inside, place.columns_inside);
    if (skipped) return;  // tested only now, so that x is loading meanwhile
    const DrawnWords* drawn = nullptr;
    if constexpr (kDrawn) {
      static_assert(DrawnWords::kRows == kTile && DrawnWords::kColumns == kSquareColumns);
      const MatrixDraws draws = draws_of(a, at.group);
      const int thread = static_cast<int>(threadIdx.x);
      const std::int64_t first_column = at.first_column + kSquareColumns * square;
      if (square != 0) __syncthreads();  // words of the square before have been read
      if (with_rows && a.row_data != nullptr) {
        draw_row_words(shared.drawn, draws, at.first_row, first_column, thread, kThreads);
      }
      if (with_columns && a.column_data != nullptr) {
        draw_column_words(shared.drawn, draws, at.first_row, first_column, thread, kThreads);
      }
      drawn = &shared.drawn;
      __syncthreads();
    }
    if (with_rows) {
      quantize_rows<X, kRounding, kFourOverSix, kAligned>(a, patch, place, at.begin(place, a.columns),
                                                          load_scaling(a.row_scaling, at.group), row_tables, drawn, shared.stage,
                                                          lane);
    }
    if (with_columns) {
      if constexpr (kHadamard) {
        transform(patch, Factors(a.sign_mask, lane));
        drop_rows(patch, place.rows_inside);
      }
      quantize_columns<X, kRounding, kFourOverSix>(a, patch, place, at.column_begin(place), at.of_group.rows,
                                                   load_scaling(a.column_scaling, at.group), column_tables, drawn, shared.stage,
                                                   lane);
    }
  }
  __syncthreads();
  store_stage<kParts>(a, at, shared.stage, with_rows, with_columns);
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
