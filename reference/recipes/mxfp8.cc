#include "reference/recipes/mxfp8.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/fast_rows.h"
#include "reference/recipes/row_bands.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"
#include "reference/types/sizes.h"

namespace assay {
namespace {

// Work is divided into strips of one row of tiles by kWidth columns: 16 KB as f32, widened once for both directions.
constexpr int kBlock = 32;
constexpr int kWidth = 128;
constexpr int kBlocks = kWidth / kBlock;
constexpr std::int64_t kStripsAtOnce = 8;

struct Strip {
  alignas(64) float x[kBlock][kWidth];
  alignas(64) std::uint8_t row_codes[kBlock][kWidth];
  alignas(64) std::uint8_t column_codes[kBlock][kWidth];
  std::uint8_t row_scales[kBlock][kBlocks];
  alignas(64) std::uint8_t column_scales[kWidth];
};

// E for the bits of a magnitude, which is never NaN.
ASSAY_INLINE std::uint8_t scale_of(std::uint32_t amax_bits, float reciprocal) {
  return fast::encode_e8m0(std::bit_cast<float>(amax_bits) * reciprocal);
}

ASSAY_INLINE float reciprocal_of(Format output) {
  return std::bit_cast<float>(output == Format::e4m3 ? 0x3b12'4925u : 0x3792'4925u);
}

template <bool kE4m3>
ASSAY_INLINE std::uint8_t encode_fp8(float x) {
  return kE4m3 ? fast::encode_e4m3(x) : fast::encode_e5m2(x);
}

// codes = the codes of x * multiplier, along one row of a strip.
template <bool kE4m3>
ASSAY_INLINE void encode_row(const float* __restrict x, const float* __restrict multiplier, std::uint8_t* __restrict codes) {
  for (int i = 0; i < kWidth; ++i) codes[i] = encode_fp8<kE4m3>(x[i] * multiplier[i]);
}

template <bool kE4m3>
ASSAY_INLINE void quantize_rows(Strip& strip, int rows, float reciprocal) {
  for (int row = 0; row < rows; ++row) {
    std::uint32_t amax[kBlocks];
    alignas(64) float multiplier[kWidth];
    fast::block_amaxes<kBlock, kWidth>(strip.x[row], amax);
    for (int block = 0; block < kBlocks; ++block) {
      const std::uint8_t scale = scale_of(amax[block], reciprocal);
      const float of_block = fast::e8m0_quantize_multiplier(scale);
      for (int i = 0; i < kBlock; ++i) multiplier[block * kBlock + i] = of_block;
      strip.row_scales[row][block] = scale;
    }
    encode_row<kE4m3>(strip.x[row], multiplier, strip.row_codes[row]);
  }
}

template <bool kE4m3>
ASSAY_INLINE void quantize_columns(Strip& strip, int rows, float reciprocal, bool two_dimensional) {
  alignas(64) std::uint32_t amax[kWidth];
  alignas(64) float multiplier[kWidth];
  fast::column_amaxes(strip.x, rows, amax);
  if (two_dimensional) {
    for (int block = 0; block < kBlocks; ++block) {
      std::uint32_t tile = 0;
      for (int i = 0; i < kBlock; ++i) tile = std::max(tile, amax[block * kBlock + i]);
      for (int i = 0; i < kBlock; ++i) amax[block * kBlock + i] = tile;
    }
  }
  for (int column = 0; column < kWidth; ++column) {
    const std::uint8_t scale = scale_of(amax[column], reciprocal);
    strip.column_scales[column] = scale;
    multiplier[column] = fast::e8m0_quantize_multiplier(scale);
  }
  for (int row = 0; row < rows; ++row) encode_row<kE4m3>(strip.x[row], multiplier, strip.column_codes[row]);
}

template <bool kE4m3>
ASSAY_INLINE void quantize_strip_as(const QuantizeConfig& config, Strip& strip, int rows) {
  const float reciprocal = reciprocal_of(config.output);
  if (config.two_dimensional) {
    quantize_columns<kE4m3>(strip, rows, reciprocal, true);
    for (int row = 0; row < rows; ++row) {
      std::memcpy(strip.row_codes[row], strip.column_codes[row], kWidth);
      for (int block = 0; block < kBlocks; ++block) strip.row_scales[row][block] = strip.column_scales[block * kBlock];
    }
    return;
  }
  if (config.rowwise) quantize_rows<kE4m3>(strip, rows, reciprocal);
  if (config.columnwise) quantize_columns<kE4m3>(strip, rows, reciprocal, false);
}

ASSAY_CLONES void quantize_strip(const QuantizeConfig& config, Format x_type, const void* x, std::int64_t first,
                                 std::int64_t stride, int rows, int columns, Strip& strip) {
  for (int row = 0; row < rows; ++row) {
    fast::prefetch_row(x_type, x, first + row * stride + kWidth, kWidth);  // of the strip that comes next
    fast::load_row(x_type, x, first + row * stride, columns, kWidth, config.zero_sign, strip.x[row]);
  }
  if (config.output == Format::e4m3) {
    quantize_strip_as<true>(config, strip, rows);
  } else {
    quantize_strip_as<false>(config, strip, rows);
  }
}

// The scale bytes of one direction.
struct Scales {
  std::vector<std::int64_t> offsets;  // of each group
  Direction direction;
  ScaleLayout layout;
  std::int64_t columns;

  Scales(std::span<const std::int64_t> groups, std::int64_t columns_of_matrix, Direction of, ScaleLayout as)
      : offsets(scale_offsets(Recipe::mxfp8, of, groups, columns_of_matrix)),
        direction(of),
        layout(as),
        columns(columns_of_matrix) {}

  // Byte of block (i, j) of the group, i along the unblocked dimension.
  std::int64_t at(const RowBand& band, std::int64_t i, std::int64_t j) const {
    const std::int64_t base = offsets[static_cast<std::size_t>(band.group)];
    const bool rowwise = direction == Direction::rowwise;
    const std::int64_t blocks = round_up(ceil_div(rowwise ? columns : band.group_rows, kBlock), 4, "columns", columns);
    if (layout == ScaleLayout::swizzled) return base + swizzled_index(i, j, blocks / 4);
    return rowwise ? base + i * blocks + j : base + j * round_up(columns, 128, "columns", columns) + i;
  }
};

void zero_bytes(std::uint8_t* bytes, std::int64_t count) {
  parallel_for(count, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

// Strips of all groups, numbered along the rows first.
struct Strips {
  RowBands bands;
  std::int64_t across;

  Strips(std::span<const std::int64_t> groups, std::int64_t columns) : bands(groups, kBlock), across(ceil_div(columns, kWidth)) {}
  std::int64_t count() const { return bands.count() * across; }
};

// The value of each code. A table, since the compiler does not vectorise the decoding of subnormals.
struct Values {
  float of[256];
  explicit Values(Format format) {
    for (int code = 0; code < 256; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      of[code] = format == Format::e4m3 ? fast::decode_e4m3(byte) : fast::decode_e5m2(byte);
    }
  }
};

// y = round(code * 2^(scale - 127)) along one row of a strip.
ASSAY_CLONES void dequantize_row(const Values& values, const std::uint8_t* codes, const std::uint8_t* scales, int count,
                                 Format output_type, void* output, std::int64_t first) {
  alignas(64) float y[kWidth];
  for (int i = 0; i < count; ++i) y[i] = values.of[codes[i]] * fast::e8m0_dequantize_multiplier(scales[i]);
  fast::store_row(output_type, y, count, output, first);
}

}  // namespace

std::uint8_t mxfp8_scale(float amax, Format output) { return scale_of(fast::magnitude_or_zero(amax), reciprocal_of(output)); }

void quantize_mxfp8(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeConfig& config = problem.config;
  const auto groups = group_rows(problem);
  const Strips strips(groups, problem.columns);
  const Scales rowwise(groups, problem.columns, Direction::rowwise, config.scale_layout);
  const Scales columnwise(groups, problem.columns, Direction::columnwise, config.scale_layout);
  auto* const row_data = static_cast<std::uint8_t*>(output.rowwise_data);
  auto* const column_data = static_cast<std::uint8_t*>(output.columnwise_data);
  auto* const row_scales = static_cast<std::uint8_t*>(output.rowwise_scale_inv);
  auto* const column_scales = static_cast<std::uint8_t*>(output.columnwise_scale_inv);
  if (config.scale_layout == ScaleLayout::swizzled) {
    if (config.rowwise) zero_bytes(row_scales, rowwise.offsets.back());
    if (config.columnwise) zero_bytes(column_scales, columnwise.offsets.back());
  }

  parallel_for(strips.count(), kStripsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    Strip strip;
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = strips.bands[index / strips.across];
      const std::int64_t column = index % strips.across * kWidth;
      const std::int64_t first = (band.group_first_row + band.row) * problem.columns + column;
      const int rows = static_cast<int>(band.rows);
      const int columns = static_cast<int>(std::min<std::int64_t>(kWidth, problem.columns - column));
      const int blocks = (columns + kBlock - 1) / kBlock;
      for (int row = 0; row < rows; ++row) {
        if (config.rowwise) fast::prefetch_bytes(row_data, first + row * problem.columns, columns);
        if (config.columnwise) fast::prefetch_bytes(column_data, first + row * problem.columns, columns);
      }
      quantize_strip(config, problem.x_type, problem.x, first, problem.columns, rows, columns, strip);
      for (int row = 0; row < rows; ++row) {
        const std::int64_t at = first + row * problem.columns;
        if (config.rowwise) {
          std::memcpy(row_data + at, strip.row_codes[row], static_cast<std::size_t>(columns));
          // The strip starts at a multiple of 4 blocks, so its scales are neighbours in either layout.
          std::memcpy(row_scales + rowwise.at(band, band.row + row, column / kBlock), strip.row_scales[row],
                      static_cast<std::size_t>(blocks));
        }
        if (config.columnwise) std::memcpy(column_data + at, strip.column_codes[row], static_cast<std::size_t>(columns));
      }
      if (!config.columnwise) continue;
      if (config.scale_layout == ScaleLayout::compact) {
        std::memcpy(column_scales + columnwise.at(band, column, band.row / kBlock), strip.column_scales,
                    static_cast<std::size_t>(columns));
      } else {
        for (int i = 0; i < columns; ++i) {
          column_scales[columnwise.at(band, column + i, band.row / kBlock)] = strip.column_scales[i];
        }
      }
    }
  });
}

void dequantize_mxfp8(const DequantizeProblem& problem, void* output) {
  const std::vector<std::int64_t> groups =
      problem.grouped ? std::vector<std::int64_t>(problem.splits.begin(), problem.splits.end()) : std::vector{problem.rows};
  const Strips strips(groups, problem.columns);
  const Scales where(groups, problem.columns, problem.direction, problem.scale_layout);
  const auto* const data = static_cast<const std::uint8_t*>(problem.data);
  const auto* const scale_bytes = static_cast<const std::uint8_t*>(problem.scale_inv);
  const bool rowwise = problem.direction == Direction::rowwise;
  const Values values(problem.data_type);

  parallel_for(strips.count(), kStripsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    std::uint8_t scales[kWidth];  // of each column of the strip
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = strips.bands[index / strips.across];
      const std::int64_t column = index % strips.across * kWidth;
      const int columns = static_cast<int>(std::min<std::int64_t>(kWidth, problem.columns - column));
      for (int row = 0; row < band.rows; ++row) {
        if (rowwise) {
          const std::int64_t at = where.at(band, band.row + row, column / kBlock);
          for (int i = 0; i < columns; ++i) scales[i] = scale_bytes[at + i / kBlock];
        } else if (row == 0) {
          for (int i = 0; i < columns; ++i) scales[i] = scale_bytes[where.at(band, column + i, band.row / kBlock)];
        }
        const std::int64_t first = (band.group_first_row + band.row + row) * problem.columns + column;
        dequantize_row(values, data + first, scales, columns, problem.output_type, output, first);
      }
    }
  });
}

}  // namespace assay
