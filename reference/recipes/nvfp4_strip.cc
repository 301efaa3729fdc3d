#include "reference/recipes/nvfp4_strip.h"

#include <algorithm>
#include <cstring>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/fast_rows.h"
#include "reference/recipes/four_over_six.h"
#include "reference/recipes/stochastic_rounding.h"

namespace assay::nvfp4 {
namespace {

ASSAY_INLINE float multiplier_of(std::uint8_t d8, const TensorScaling& tensor) {
  return at_most_max(1.0f / (fast::decode_e4m3(d8) * tensor.inverse));
}

// ---- 4over6: lanes are blocks, so that each lane adds its errors in order -------------------------------------------

// error[lane] = the error of `terms` elements x[i * stride + lane] under scales d8[lane].
ASSAY_INLINE void errors_of(const float* __restrict x, int stride, int terms, int lanes, const std::uint8_t* __restrict d8,
                            const TensorScaling& tensor, const QuantizeConfig& config, float* __restrict error) {
  const float denominator = 6 * config.nvfp4_e4m3_max;
  const bool squared = config.four_over_six == FourOverSix::mean_squared_error;
  alignas(64) float multiplier[kWidth], scale[kWidth], sum[kWidth], term[kWidth];
  for (int l = 0; l < lanes; ++l) {
    sum[l] = 0;
    multiplier[l] = multiplier_of(d8[l], tensor);
    scale[l] = fast::decode_e4m3(d8[l]);
  }
  for (int i = 0; i < terms; ++i) {
    const float* __restrict values = x + i * stride;
    for (int l = 0; l < lanes; ++l) {
      const float code = e2m1_value(fast::encode_e2m1(values[l] * multiplier[l]));
      term[l] = code * scale[l] * tensor.amax / denominator - values[l];
    }
    if (squared) {
      for (int l = 0; l < lanes; ++l) sum[l] += term[l] * term[l];
    } else {
      for (int l = 0; l < lanes; ++l) {
        sum[l] += std::bit_cast<float>(std::bit_cast<std::uint32_t>(term[l]) & fast::kMagnitude);
      }
    }
  }
  for (int l = 0; l < lanes; ++l) error[l] = sum[l];
}

struct Candidates {
  alignas(64) std::uint8_t four[kWidth], six[kWidth];
  alignas(64) float error_four[kWidth], error_six[kWidth];
};

// The two scales of each lane and their errors.
ASSAY_INLINE void compare_candidates(const float* x, int stride, int terms, int lanes, const std::uint32_t* amax,
                                     const TensorScaling& tensor, const QuantizeConfig& config, Candidates& all) {
  for (int l = 0; l < lanes; ++l) {
    const float base = std::bit_cast<float>(amax[l]) / 6.0f * tensor.scale;
    const float larger = base * 1.5f;
    all.four[l] = fast::encode_e4m3(larger < kFourOverSixLargest ? larger : kFourOverSixLargest);
    all.six[l] = fast::encode_e4m3(base < kFourOverSixLargest ? base : kFourOverSixLargest);
  }
  errors_of(x, stride, terms, lanes, all.four, tensor, config, all.error_four);
  errors_of(x, stride, terms, lanes, all.six, tensor, config, all.error_six);
}

ASSAY_INLINE float add_by_halves(const float* error) {
  float e[kBlock];
  for (int r = 0; r < kBlock; ++r) e[r] = error[r];
  for (int distance = kBlock / 2; distance > 0; distance /= 2) {
    for (int r = 0; r < distance; ++r) e[r] += e[r + distance];
  }
  return e[0];
}

// The rows of one block of columns as lanes.
ASSAY_INLINE void rows_as_lanes(const Strip& strip, int block, float* __restrict lanes) {
  for (int i = 0; i < kBlock; ++i) {
    for (int row = 0; row < kBlock; ++row) lanes[i * kBlock + row] = strip.x[row][block * kBlock + i];
  }
}

// ---- Scales of a strip ------------------------------------------------------------------------------------------------

ASSAY_INLINE std::uint8_t block_scale(std::uint32_t amax, const TensorScaling& tensor) {
  return fast::encode_e4m3(at_most_max(std::bit_cast<float>(amax) * tensor.sixth));
}

// Amax of each tile of 16 columns.
ASSAY_INLINE void tile_amaxes(const Strip& strip, int rows, std::uint32_t (&tiles)[kBlocks]) {
  std::uint32_t amax[kWidth];
  fast::column_amaxes(strip.x, rows, amax);
  for (int block = 0; block < kBlocks; ++block) {
    tiles[block] = 0;
    for (int i = 0; i < kBlock; ++i) tiles[block] = std::max(tiles[block], amax[block * kBlock + i]);
  }
}

// 4over6: the scale that rows choose for a tile.
ASSAY_INLINE std::uint8_t tile_scale_by_rows(const QuantizeConfig& config, const TensorScaling& tensor, const Strip& strip,
                                             int rows, int columns, int block, std::uint32_t tile_amax) {
  Candidates all;
  float lanes[kBlock * kBlock];
  std::uint32_t amax[kBlock];
  for (int row = 0; row < kBlock; ++row) amax[row] = tile_amax;
  rows_as_lanes(strip, block, lanes);
  compare_candidates(lanes, kBlock, std::min(kBlock, columns - block * kBlock), kBlock, amax, tensor, config, all);
  for (int row = rows; row < kBlock; ++row) all.error_four[row] = all.error_six[row] = 0;
  return add_by_halves(all.error_four) < add_by_halves(all.error_six) ? all.four[0] : all.six[0];
}

// 4over6: the scales that columns choose for their tiles; the lanes are columns already.
ASSAY_INLINE void tile_scales_by_columns(const QuantizeConfig& config, const TensorScaling& tensor, const Strip& strip, int rows,
                                         int columns, const std::uint32_t (&tile_amax)[kBlocks], std::uint8_t* scales) {
  Candidates all;
  alignas(64) std::uint32_t amax[kWidth];
  for (int column = 0; column < kWidth; ++column) amax[column] = tile_amax[column / kBlock];
  compare_candidates(strip.x[0], kWidth, rows, kWidth, amax, tensor, config, all);
  for (int column = columns; column < kWidth; ++column) all.error_four[column] = all.error_six[column] = 0;
  for (int block = 0; block < kBlocks; ++block) {
    const int first = block * kBlock;
    const bool four = add_by_halves(all.error_four + first) < add_by_halves(all.error_six + first);
    scales[block] = four ? all.four[first] : all.six[first];
  }
}

ASSAY_INLINE void row_scales(const QuantizeConfig& config, const TensorScaling& tensor, Strip& strip, int rows, int columns) {
  if (config.two_dimensional) {
    std::uint32_t tiles[kBlocks];
    tile_amaxes(strip, rows, tiles);
    for (int block = 0; block < kBlocks; ++block) {
      strip.row_scales[0][block] = config.four_over_six == FourOverSix::off
                                       ? block_scale(tiles[block], tensor)
                                       : tile_scale_by_rows(config, tensor, strip, rows, columns, block, tiles[block]);
    }
    for (int row = 1; row < rows; ++row) std::memcpy(strip.row_scales[row], strip.row_scales[0], kBlocks);
    return;
  }
  std::uint32_t amax[kBlock][kBlocks];
  for (int row = 0; row < kBlock; ++row) fast::block_amaxes<kBlock, kWidth>(strip.x[row], amax[row]);
  if (config.four_over_six == FourOverSix::off) {
    for (int row = 0; row < rows; ++row) {
      for (int block = 0; block < kBlocks; ++block) strip.row_scales[row][block] = block_scale(amax[row][block], tensor);
    }
    return;
  }
  for (int block = 0; block < kBlocks; ++block) {
    Candidates all;
    float lanes[kBlock * kBlock];
    std::uint32_t amax_of_rows[kBlock];
    for (int row = 0; row < kBlock; ++row) amax_of_rows[row] = amax[row][block];
    rows_as_lanes(strip, block, lanes);
    compare_candidates(lanes, kBlock, std::min(kBlock, columns - block * kBlock), kBlock, amax_of_rows, tensor, config, all);
    for (int row = 0; row < rows; ++row) {
      strip.row_scales[row][block] = all.error_four[row] < all.error_six[row] ? all.four[row] : all.six[row];
    }
  }
}

ASSAY_INLINE void column_scales(const QuantizeConfig& config, const TensorScaling& tensor, Strip& strip,
                                const float (&x)[kBlock][kWidth], int rows, int columns) {
  if (config.two_dimensional) {
    std::uint32_t tiles[kBlocks];
    std::uint8_t scales[kBlocks];
    tile_amaxes(strip, rows, tiles);
    if (config.four_over_six == FourOverSix::off) {
      for (int block = 0; block < kBlocks; ++block) scales[block] = block_scale(tiles[block], tensor);
    } else {
      tile_scales_by_columns(config, tensor, strip, rows, columns, tiles, scales);
    }
    for (int column = 0; column < kWidth; ++column) strip.column_scales[column] = scales[column / kBlock];
    return;
  }
  alignas(64) std::uint32_t amax[kWidth];
  fast::column_amaxes(x, rows, amax);
  if (config.four_over_six == FourOverSix::off) {
    for (int column = 0; column < kWidth; ++column) strip.column_scales[column] = block_scale(amax[column], tensor);
    return;
  }
  Candidates all;
  compare_candidates(x[0], kWidth, rows, kWidth, amax, tensor, config, all);
  for (int column = 0; column < kWidth; ++column) {
    strip.column_scales[column] = all.error_four[column] < all.error_six[column] ? all.four[column] : all.six[column];
  }
}

// ---- Codes of a strip -------------------------------------------------------------------------------------------------

// Each lane has its own multiplier.
ASSAY_INLINE void encode_lanes(const float* __restrict x, const float* __restrict multiplier,
                               const std::uint8_t* __restrict random, std::uint8_t* __restrict codes) {
  if (random != nullptr) {
    for (int l = 0; l < kWidth; ++l) codes[l] = stochastic_e2m1(x[l] * multiplier[l], random[l]);
  } else {
    for (int l = 0; l < kWidth; ++l) codes[l] = fast::encode_e2m1(x[l] * multiplier[l]);
  }
}
namespace cloned {  // with internal linkage: see reference/support/simd.h

ASSAY_CLONES void quantize_rows(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns, Strip& strip) {
  row_scales(config, tensor, strip, rows, columns);
  alignas(64) float multiplier[kWidth];
  for (int row = 0; row < rows; ++row) {
    float of_block[kBlocks];
    for (int block = 0; block < kBlocks; ++block) of_block[block] = multiplier_of(strip.row_scales[row][block], tensor);
    for (int block = 0; block < kBlocks; ++block) {
      for (int i = 0; i < kBlock; ++i) multiplier[block * kBlock + i] = of_block[block];
    }
    encode_lanes(strip.x[row], multiplier, config.stochastic_rounding ? strip.random[row] : nullptr, strip.codes[row]);
    const std::uint8_t* __restrict codes = strip.codes[row];
    std::uint8_t* __restrict bytes = strip.row_bytes[row];
    for (int i = 0; i < kWidth / 2; ++i) bytes[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  }
}

ASSAY_CLONES void quantize_columns(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns,
                                   Strip& strip) {
  const auto& x = config.hadamard ? strip.y : strip.x;
  column_scales(config, tensor, strip, x, rows, columns);
  alignas(64) float multiplier[kWidth];
  for (int column = 0; column < kWidth; ++column) multiplier[column] = multiplier_of(strip.column_scales[column], tensor);
  for (int row = 0; row < kBlock; ++row) {
    encode_lanes(x[row], multiplier, config.stochastic_rounding ? strip.random[row] : nullptr, strip.codes[row]);
  }
  for (int column = 0; column < kWidth; ++column) strip.column_bytes[column] = 0;
  for (int pair = 0; pair < kBlock / 2; ++pair) {
    const std::uint8_t* __restrict low = strip.codes[2 * pair];
    const std::uint8_t* __restrict high = strip.codes[2 * pair + 1];
    for (int column = 0; column < kWidth; ++column) {
      const std::uint64_t byte = low[column] | static_cast<std::uint64_t>(high[column]) << 4;
      strip.column_bytes[column] |= byte << (8 * pair);
    }
  }
}

ASSAY_CLONES void load_strip(Format type, const void* x, std::int64_t first, std::int64_t stride, int rows, int columns,
                             ZeroSign zero_sign, float (&values)[kBlock][kWidth]) {
  for (int row = 0; row < kBlock; ++row) {
    fast::prefetch_row(type, x, first + (row + kBlock) * stride, kWidth);  // of the strip that comes next
    fast::load_row(type, x, first + row * stride, row < rows ? columns : 0, kWidth, zero_sign, values[row]);
  }
}

}  // namespace cloned
}  // namespace

void quantize_rows(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns, Strip& strip) {
  cloned::quantize_rows(config, tensor, rows, columns, strip);
}

void quantize_columns(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns, Strip& strip) {
  cloned::quantize_columns(config, tensor, rows, columns, strip);
}

void load_strip(Format type, const void* x, std::int64_t first, std::int64_t stride, int rows, int columns, ZeroSign zero_sign,
                float (&values)[kBlock][kWidth]) {
  cloned::load_strip(type, x, first, stride, rows, columns, zero_sign, values);
}

}  // namespace assay::nvfp4
