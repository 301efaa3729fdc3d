// Back from NVFP4 codes and scales (spec nvfp4-6.1), layer (b).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/fast_rows.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/nvfp4_pieces.h"
#include "reference/recipes/nvfp4_strip.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

using namespace nvfp4;

// y = round(e2m1 * f) for one row of a piece, f for each column.
ASSAY_CLONES void dequantize_row(const std::uint8_t* codes, const float* factors, int count, Format type, void* output,
                                 std::int64_t first) {
  alignas(64) float y[kWidth];
  for (int i = 0; i < count; ++i) y[i] = e2m1_value(codes[i]) * factors[i];
  fast::store_row(type, y, count, output, first);
}

}  // namespace

void dequantize_nvfp4(const DequantizeProblem& problem, void* output) {
  const std::vector<std::int64_t> groups =
      problem.grouped ? std::vector<std::int64_t>(problem.splits.begin(), problem.splits.end()) : std::vector{problem.rows};
  const bool rowwise = problem.direction == Direction::rowwise;
  const auto* data = static_cast<const std::uint8_t*>(problem.data);
  const Scales where(const_cast<void*>(problem.scale_inv), groups, problem.columns, problem.direction, problem.scale_layout);
  const float inverse = 1.0f / (6 * problem.nvfp4_e4m3_max);
  const Pieces pieces(groups, problem.columns, kBlock, kWidth);

  parallel_for(pieces.count(), kPiecesAtOnce * 8, [&](std::int64_t begin, std::int64_t end) {
    std::uint8_t codes[kBlock][kWidth];
    float factors[kBlock][kWidth];
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = pieces.band(index);
      const std::int64_t column = pieces.first_column(index);
      const int columns = static_cast<int>(pieces.columns_of(index)), rows = static_cast<int>(band.rows);
      const std::int64_t group_first = band.group_first_row * problem.columns;
      const float amax = problem.amax[static_cast<std::size_t>(band.group)];
      const auto factor_at = [&](std::int64_t i, std::int64_t j) {
        return fast::decode_e4m3(*where.at(band, i, j / kBlock)) * amax * inverse;
      };
      const auto code_at = [&](std::int64_t place) { return static_cast<std::uint8_t>(data[place / 2] >> (place % 2 * 4)); };
      if (rowwise) {
        for (int r = 0; r < rows; ++r) {
          const std::int64_t first = group_first + (band.row + r) * problem.columns + column;
          for (int c = 0; c < columns; c += kBlock) {
            std::fill_n(factors[r] + c, kBlock, factor_at(band.row + r, column + c));
          }
          for (int c = 0; c < columns; ++c) codes[r][c] = code_at(first + c);
        }
      } else {
        for (int c = 0; c < columns; ++c) {
          const std::int64_t first = group_first + (column + c) * band.group_rows + band.row;
          const float factor = factor_at(column + c, band.row);
          for (int r = 0; r < rows; ++r) {
            factors[r][c] = factor;
            codes[r][c] = code_at(first + r);
          }
        }
      }
      for (int r = 0; r < rows; ++r) {
        dequantize_row(codes[r], factors[r], columns, problem.output_type, output,
                       group_first + (band.row + r) * problem.columns + column);
      }
    }
  });
}

}  // namespace assay
