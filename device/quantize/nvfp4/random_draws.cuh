#pragma once
// NVFP4, random bytes that are drawn from a state {seed, offset} as kernels of TransformerEngine do (spec nvfp4-4.3), on the device
// and on the host.
//
// Every kernel takes the words of a thread four at a time for 16 elements that follow each other along the direction, which are a
// block of the quantization: a block of the generator for a block of 16. So nothing is drawn twice. The threads of a tile of
// 128 x 64 draw its 512 blocks of each direction into shared memory, two each, and a lane then reads the words of its elements:
//
//   draw_row_words      thread t: blocks t, t + 256 of the tile's rows     512 x 4 words, rows of 16 words, 18 apart
//   draw_column_words   likewise of its columns                            512 x 4 words, columns of 32 words, 33 apart
//
// The distances of 18 and 33 words let the lanes of a warp read from different banks, of columns from two each.
//
//   matches   reference/recipes/random_draws.h

#include <cstdint>

#include "device/quantize/nvfp4/philox.cuh"
#include "reference/recipes/random_draws.h"

namespace assay::device::nvfp4 {

// What one kernel of TransformerEngine draws for a matrix, or for a group.
struct MatrixDraws {
  RandomDraws assignment;
  bool rowwise, columnwise;  // directions that it draws for
  std::uint64_t seed, offset;
  std::int64_t columns;
};

// The block of the generator for a block of 16.
struct DrawnBlock {
  std::uint64_t subsequence;
  std::uint32_t ahead;  // blocks after `offset`
  bool upper_first;     // the first two words are for the second eight elements
};

// Of the block of row `row`, from column `column` on.
ASSAY_BOTH DrawnBlock block_of_row(const MatrixDraws& draws, std::int64_t row, std::int64_t column) {
  const auto tile = static_cast<std::uint64_t>(column / 128 + row / 128 * ((draws.columns + 127) / 128));
  std::uint32_t r = static_cast<std::uint32_t>(row) % 128, c = static_cast<std::uint32_t>(column) % 128;
  if (draws.assignment == RandomDraws::te_vector_blockwise) return {tile * 256 + r % 32 * 8 + c / 16, r / 32, false};
  std::uint32_t thread, ahead;
  if (draws.assignment == RandomDraws::te_tuned_1d) {  // quarters of 64 x 64
    const std::uint32_t quarter = r / 64 * 2 + c / 64;
    r %= 64, c %= 64;
    thread = r % 32 * 4 + c / 16;
    ahead = quarter * (draws.columnwise ? 4 : 2) + r / 32;
  } else {  // te_2d: bands of 32 rows, columns first
    thread = r % 16 * 8 + c / 16;
    ahead = r / 32 * (draws.columnwise ? 4 : 2) + (draws.columnwise ? 2 : 0) + r % 32 / 16;
  }
  return {tile * 128 + thread, ahead, thread % 32 >= 16};
}

// Of the block of column `column`, from row `row` on.
ASSAY_BOTH DrawnBlock block_of_column(const MatrixDraws& draws, std::int64_t row, std::int64_t column) {
  const auto tile = static_cast<std::uint64_t>(column / 128 + row / 128 * ((draws.columns + 127) / 128));
  const std::uint32_t r = static_cast<std::uint32_t>(row) % 128, c = static_cast<std::uint32_t>(column) % 128;
  if (draws.assignment == RandomDraws::te_vector_blockwise) {
    return {tile * 256 + c / 2 % 32 * 8 + r / 16, (draws.rowwise ? 4u : 0u) + c / 64 * 2 + c % 2, false};
  }
  if (draws.assignment == RandomDraws::te_tuned_1d) {  // which has rows always
    const std::uint32_t quarter = r / 64 * 2 + c / 64, lane = c % 64 / 2, warp = (r % 64 / 16 - lane / 2) % 4;
    return {tile * 128 + warp * 32 + lane, quarter * 4 + 2 + c % 2, false};
  }
  return {tile * 128 + c, r / 32 * (draws.rowwise ? 4 : 2) + r % 32 / 16, false};
}

// The words of a tile of 128 rows x 64 columns, each for four elements.
struct DrawnWords {
  static constexpr int kRows = 128, kColumns = 64, kRowPitch = 18, kColumnPitch = 33;
  std::uint32_t rows[kRows * kRowPitch];
  std::uint32_t columns[kColumns * kColumnPitch];

  // Of four columns from `column` on, of four rows from `row` on.
  ASSAY_BOTH std::uint32_t of_row(int row, int column) const { return rows[row * kRowPitch + column / 4]; }
  ASSAY_BOTH std::uint32_t of_column(int column, int row) const { return columns[column * kColumnPitch + row / 4]; }
};

// By each of `threads` threads; (row, column) is the tile's first element.
ASSAY_BOTH void draw_row_words(DrawnWords& to, const MatrixDraws& draws, std::int64_t row, std::int64_t column, int thread,
                               int threads) {
  constexpr int kBlocks = DrawnWords::kColumns / 16;
  for (int at = thread; at < DrawnWords::kRows * kBlocks; at += threads) {
    const int r = at / kBlocks, block = at % kBlocks;
    const DrawnBlock from = block_of_row(draws, row + r, column + 16 * block);
    const PhiloxBlock drawn = philox_block(draws.seed, from.subsequence, draws.offset, from.ahead);
    std::uint32_t* const words = to.rows + r * DrawnWords::kRowPitch + 4 * block;
    const bool upper = from.upper_first;
    words[0] = drawn.word[upper ? 2 : 0], words[1] = drawn.word[upper ? 3 : 1];
    words[2] = drawn.word[upper ? 0 : 2], words[3] = drawn.word[upper ? 1 : 3];
  }
}
ASSAY_BOTH void draw_column_words(DrawnWords& to, const MatrixDraws& draws, std::int64_t row, std::int64_t column, int thread,
                                  int threads) {
  constexpr int kBlocks = DrawnWords::kRows / 16;
  for (int at = thread; at < DrawnWords::kColumns * kBlocks; at += threads) {
    const int c = at / kBlocks, block = at % kBlocks;
    const DrawnBlock from = block_of_column(draws, row + 16 * block, column + c);
    const PhiloxBlock drawn = philox_block(draws.seed, from.subsequence, draws.offset, from.ahead);
    std::uint32_t* const words = to.columns + c * DrawnWords::kColumnPitch + 4 * block;
    for (int e = 0; e < 4; ++e) words[e] = drawn.word[e];
  }
}

}  // namespace assay::device::nvfp4
