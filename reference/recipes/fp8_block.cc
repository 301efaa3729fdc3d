#include "reference/recipes/fp8_block.h"

#include <algorithm>
#include <vector>

#include "reference/layout/scale_shape.h"
#include "reference/recipes/fp8_tile.h"
#include "reference/recipes/per_tensor.h"
#include "reference/recipes/row_bands.h"
#include "reference/recipes/swiglu.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

using fast::kTile;

// Scales of `count` blocks and their reciprocals.
ASSAY_CLONES void scales_of(const float* __restrict amax, int count, float max, bool pow2, float epsilon, float overflow,
                            float* __restrict scale, float* __restrict inverse) {
  for (int i = 0; i < count; ++i) {
    scale[i] = scale_from_amax(amax[i], max, pow2, epsilon, overflow);
    inverse[i] = 1.0f / scale[i];
  }
}

// The matrices of one direction.
struct Stored {
  std::uint8_t* codes = nullptr;  // null: not requested
  float* scales = nullptr;
  std::vector<std::int64_t> offsets;  // of each group's scales
};

Stored stored(const QuantizeProblem& problem, Direction direction, std::span<const std::int64_t> groups, bool requested,
              void* codes, void* scales) {
  if (!requested) return {};
  return {static_cast<std::uint8_t*>(codes), static_cast<float*>(scales),
          scale_offsets(problem.config.recipe, direction, groups, problem.columns)};
}

class BlockQuantizer {
 public:
  BlockQuantizer(const QuantizeProblem& problem, const QuantizeOutput& output)
      : problem_(problem),
        groups_(group_rows(problem)),
        bands_(groups_, kTile),
        cast_{problem.config.output, problem.config.zero_sign},
        max_(max_finite(problem.config.output)),
        overflow_(max_finite(problem.x_type)),
        rowwise_(
            stored(problem, Direction::rowwise, groups_, problem.config.rowwise, output.rowwise_data, output.rowwise_scale_inv)),
        columnwise_(stored(problem, Direction::columnwise, groups_, problem.config.columnwise, output.columnwise_data,
                           output.columnwise_scale_inv)) {}

  // Tile by tile: each is read from memory once, and one thread writes all its codes and scales.
  void run() const {
    const std::int64_t across = ceil_div(problem_.columns, kTile);
    if (across == 0 || (rowwise_.codes == nullptr && columnwise_.codes == nullptr)) return;
    constexpr std::int64_t kTilesARange = 8;
    parallel_for(bands_.count() * across, kTilesARange, [&](std::int64_t begin, std::int64_t end) {
      fast::TileCodes codes;
      fast::SwigluTile activated;
      for (std::int64_t i = begin; i < end; ++i) quantize_tile(bands_[i / across], i % across, across, codes, activated);
    });
  }

 private:
  void quantize_tile(const RowBand& band, std::int64_t tile_column, std::int64_t across, fast::TileCodes& codes,
                     fast::SwigluTile& activated) const {
    const std::int64_t first_column = tile_column * kTile;
    const std::int64_t first = (band.group_first_row + band.row) * problem_.columns + first_column;
    fast::Tile tile = {problem_.x_type,
                       fast::element(problem_.x_type, problem_.x, first),
                       problem_.columns,
                       static_cast<int>(band.rows),
                       static_cast<int>(std::min<std::int64_t>(kTile, problem_.columns - first_column)),
                       tile_column + 1 < across ? fast::element(problem_.x_type, problem_.x, first + kTile) : nullptr};
    if (problem_.config.activation != Activation::off) {
      const std::int64_t gate = (band.group_first_row + band.row) * 2 * problem_.columns + first_column;
      tile = fast::swiglu_tile(problem_.x_type, problem_.x, gate, problem_.columns, tile.rows, tile.columns, activated);
    }
    std::uint8_t* const rowwise = rowwise_.codes == nullptr ? nullptr : rowwise_.codes + first;
    std::uint8_t* const columnwise = columnwise_.codes == nullptr ? nullptr
                                                                  : columnwise_.codes + band.group_first_row * problem_.columns +
                                                                        first_column * band.group_rows + band.row;
    if (problem_.config.recipe == Recipe::block_1x128) {
      quantize_lines(band, tile_column, tile, rowwise, columnwise, codes);
    } else {
      quantize_square(band, tile_column, tile, rowwise, columnwise, codes);
    }
  }

  // A scale for each row of the tile, and another for each column.
  void quantize_lines(const RowBand& band, std::int64_t tile_column, const fast::Tile& tile, std::uint8_t* rowwise,
                      std::uint8_t* columnwise, fast::TileCodes& codes) const {
    float row_amax[kTile], column_amax[kTile], row_scales[kTile], column_scales[kTile];
    if (columnwise == nullptr) {
      fast::row_amaxes(tile, row_amax);
    } else {
      fast::row_and_column_amaxes(tile, row_amax, column_amax);
    }
    if (rowwise != nullptr) {  // [K-block][row]
      const std::int64_t stride = scale_stride(Direction::rowwise, band);
      float* const inverse = rowwise_.scales + rowwise_.offsets[band.group] + tile_column * stride + band.row;
      scales_for(row_amax, tile.rows, row_scales, inverse);
    }
    if (columnwise != nullptr) {  // [row-block][k]
      const std::int64_t stride = scale_stride(Direction::columnwise, band);
      float* const inverse =
          columnwise_.scales + columnwise_.offsets[band.group] + band.row / kTile * stride + tile_column * kTile;
      scales_for(column_amax, tile.columns, column_scales, inverse);
    }
    if (columnwise == nullptr) return fast::encode_rows(cast_, tile, row_scales, rowwise, problem_.columns);
    if (rowwise == nullptr) {
      fast::encode_columns(cast_, tile, column_scales, codes.at[0], kTile);
    } else {
      fast::encode_rows_and_columns(cast_, tile, row_scales, column_scales, rowwise, problem_.columns, codes.at[0], kTile);
    }
    fast::transpose_codes(codes, tile.rows, tile.columns, columnwise, band.group_rows);
  }

  // One scale for the tile; the two directions share its codes.
  void quantize_square(const RowBand& band, std::int64_t tile_column, const fast::Tile& tile, std::uint8_t* rowwise,
                       std::uint8_t* columnwise, fast::TileCodes& codes) const {
    float row_amax[kTile], scale, inverse;
    fast::row_amaxes(tile, row_amax);
    const float amax = *std::max_element(row_amax, row_amax + tile.rows);
    scales_for(&amax, 1, &scale, &inverse);
    float scales[kTile];
    std::fill_n(scales, tile.rows, scale);

    const std::int64_t tile_row = band.row / kTile;
    if (rowwise != nullptr) {  // [row-block][K-block]
      const std::int64_t stride = scale_stride(Direction::rowwise, band);
      rowwise_.scales[rowwise_.offsets[band.group] + tile_row * stride + tile_column] = inverse;
    }
    if (columnwise == nullptr) return fast::encode_rows(cast_, tile, scales, rowwise, problem_.columns);

    // [K-block][row-block]
    const std::int64_t stride = scale_stride(Direction::columnwise, band);
    columnwise_.scales[columnwise_.offsets[band.group] + tile_column * stride + tile_row] = inverse;
    fast::encode_rows(cast_, tile, scales, codes.at[0], kTile);
    fast::transpose_codes(codes, tile.rows, tile.columns, columnwise, band.group_rows);
    if (rowwise == nullptr) return;
    for (int r = 0; r < tile.rows; ++r) std::copy_n(codes.at[r], tile.columns, rowwise + r * problem_.columns);
  }

  void scales_for(const float* amax, int count, float* scale, float* inverse) const {
    const QuantizeConfig& config = problem_.config;
    scales_of(amax, count, max_, config.force_pow_2_scales, config.amax_epsilon, overflow_, scale, inverse);
  }

  std::int64_t scale_stride(Direction direction, const RowBand& band) const {
    return scale_shape(problem_.config.recipe, direction, band.group_rows, problem_.columns).columns;
  }

  const QuantizeProblem& problem_;
  const std::vector<std::int64_t> groups_;
  const RowBands bands_;
  const fast::Fp8Cast cast_;
  const float max_, overflow_;
  const Stored rowwise_, columnwise_;
};

}  // namespace

void quantize_fp8_block(const QuantizeProblem& problem, const QuantizeOutput& output) { BlockQuantizer(problem, output).run(); }

}  // namespace assay
