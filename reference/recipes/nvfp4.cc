#include "reference/recipes/nvfp4.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/sizes.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/fast_rows.h"
#include "reference/recipes/four_over_six.h"
#include "reference/recipes/hadamard.h"
#include "reference/recipes/row_bands.h"
#include "reference/recipes/stochastic_rounding.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

static_assert(std::endian::native == std::endian::little, "8 code bytes are stored as one word");

// Work is cut into pieces of kPieceRows by kWidth, so that the transposed codes of a column are written 64 bytes on end;
// a piece is done in strips of 16 rows, which hold whole blocks of both directions.
constexpr int kBlock = 16;
constexpr int kWidth = 128;
constexpr int kBlocks = kWidth / kBlock;
constexpr int kPieceRows = 128;
constexpr std::int64_t kPiecesAtOnce = 2;

struct Strip {
  alignas(64) float x[kBlock][kWidth];  // rows and columns that the matrix lacks are 0
  alignas(64) float y[kBlock][kWidth];  // the same after the Hadamard transform
  alignas(64) std::uint8_t codes[kBlock][kWidth];
  alignas(64) std::uint8_t random[kBlock][kWidth];
  alignas(64) std::uint16_t transformed[kBlock][kWidth];
  // Results.
  alignas(64) std::uint8_t row_bytes[kBlock][kWidth / 2];
  std::uint8_t row_scales[kBlock][kBlocks];
  alignas(64) std::uint64_t column_bytes[kWidth];  // 16 codes, the first row lowest
  alignas(64) std::uint8_t column_scales[kWidth];
};

// A minimum with FLT_MAX that also replaces NaN.
ASSAY_INLINE float at_most_max(float x) { return x < FLT_MAX ? x : FLT_MAX; }

// The value of a code, with selections between integers only: the compiler would not vectorise one between sums.
ASSAY_INLINE float e2m1_value(std::uint32_t code) {
  const std::uint32_t magnitude = code & 7, half = magnitude == 0 ? 0u : 0x3f00'0000u;
  const std::uint32_t bits = magnitude < 2 ? half : (magnitude << 22) + (126u << 23);
  return std::bit_cast<float>((code & 8) << 28 | bits);
}

// G and what follows from it.
struct TensorScaling {
  float amax, scale, sixth, inverse;

  TensorScaling(float tensor_amax, float e4m3_max) : amax(tensor_amax) {
    scale = at_most_max(6 * e4m3_max / tensor_amax);
    if (tensor_amax == 0 || scale == 0) scale = 1;
    sixth = scale * std::bit_cast<float>(0x3e2a'aaabu);
    inverse = 1 / scale;
  }
};

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
ASSAY_INLINE void tile_scales_by_columns(const QuantizeConfig& config, const TensorScaling& tensor, const Strip& strip,
                                         int rows, int columns, const std::uint32_t (&tile_amax)[kBlocks],
                                         std::uint8_t* scales) {
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

ASSAY_CLONES void quantize_rows(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns,
                                Strip& strip) {
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

// ---- Largest magnitudes -----------------------------------------------------------------------------------------------

// Magnitudes moved up so that the largest that is not NaN is the largest signed integer: NaN becomes negative, and the
// maximum is a plain one.
template <class Code, class Signed, Code kInfinity>
ASSAY_INLINE Code largest_code(const Code* __restrict codes, std::int64_t count) {
  constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  constexpr Code kUp = kMagnitude - kInfinity;
  Signed largest = static_cast<Signed>(kUp);  // 0
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, static_cast<Signed>(static_cast<Code>((codes[i] & kMagnitude) + kUp)));
  }
  return static_cast<Code>(static_cast<Code>(largest) - kUp);
}

// f32 bits of max |x|.
ASSAY_CLONES std::uint32_t largest_magnitude(Format type, const void* x, std::int64_t first, std::int64_t count) {
  if (type == Format::f32) {
    return largest_code<std::uint32_t, std::int32_t, 0x7F80'0000>(static_cast<const std::uint32_t*>(x) + first, count);
  }
  const auto* codes = static_cast<const std::uint16_t*>(x) + first;
  if (type == Format::bf16) return std::uint32_t{largest_code<std::uint16_t, std::int16_t, 0x7F80>(codes, count)} << 16;
  return std::bit_cast<std::uint32_t>(fast::widen_f16(largest_code<std::uint16_t, std::int16_t, 0x7C00>(codes, count)));
}

class GroupAmax {
 public:
  explicit GroupAmax(std::size_t groups) : bits_(groups) {}
  void raise(std::int64_t group, std::uint32_t bits) {  // a maximum: the order does not matter
    std::atomic<std::uint32_t>& largest = bits_[static_cast<std::size_t>(group)];
    std::uint32_t seen = largest.load(std::memory_order_relaxed);
    while (seen < bits && !largest.compare_exchange_weak(seen, bits, std::memory_order_relaxed)) {
    }
  }
  std::vector<float> values() const {
    std::vector<float> values;
    for (const auto& bits : bits_) values.push_back(std::bit_cast<float>(bits.load()));
    return values;
  }

 private:
  std::vector<std::atomic<std::uint32_t>> bits_;
};

// Pieces of all groups, numbered along the rows first.
struct Pieces {
  RowBands bands;
  std::int64_t columns, width, across;

  Pieces(std::span<const std::int64_t> groups, std::int64_t columns_of_matrix, std::int64_t height, std::int64_t width_of)
      : bands(groups, height), columns(columns_of_matrix), width(width_of), across(ceil_div(columns, width)) {}
  std::int64_t count() const { return bands.count() * across; }
  RowBand band(std::int64_t index) const { return bands[index / across]; }
  std::int64_t first_column(std::int64_t index) const { return index % across * width; }
  std::int64_t columns_of(std::int64_t index) const { return std::min(width, columns - first_column(index)); }
};

std::vector<float> amax_of_groups(const QuantizeProblem& problem, std::span<const std::int64_t> groups) {
  GroupAmax amax(groups.size());
  const Pieces pieces(groups, problem.columns, 16, 4096);
  parallel_for(pieces.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = pieces.band(index);
      for (std::int64_t row = 0; row < band.rows; ++row) {
        const std::int64_t first =
            (band.group_first_row + band.row + row) * problem.columns + pieces.first_column(index);
        amax.raise(band.group, largest_magnitude(problem.x_type, problem.x, first, pieces.columns_of(index)));
      }
    }
  });
  return amax.values();
}

std::vector<float> amax_of_transformed_groups(const QuantizeProblem& problem, std::span<const std::int64_t> groups) {
  GroupAmax amax(groups.size());
  const Pieces pieces(groups, problem.columns, kBlock, 1024);
  const auto* x = static_cast<const std::uint16_t*>(problem.x);
  parallel_for(pieces.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint16_t> y(static_cast<std::size_t>(kBlock * pieces.width));
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = pieces.band(index);
      const std::int64_t columns = pieces.columns_of(index);
      const std::int64_t first = (band.group_first_row + band.row) * problem.columns + pieces.first_column(index);
      hadamard_transform(problem.config.hadamard_sign_mask, x + first, problem.columns, band.rows, columns, y.data(),
                         columns);
      amax.raise(band.group, largest_magnitude(Format::bf16, y.data(), 0, band.rows * columns));
    }
  });
  return amax.values();
}

// ---- Placing ------------------------------------------------------------------------------------------------------------

// The scale bytes of one direction: block (i, j) of a group, i along the lines of the stored matrix.
struct Scales {
  std::uint8_t* bytes = nullptr;
  std::vector<std::int64_t> offsets;  // of each group
  ScaleLayout layout;
  bool rowwise;
  std::int64_t columns;

  Scales(void* buffer, std::span<const std::int64_t> groups, std::int64_t columns_of_matrix, Direction direction,
         ScaleLayout as)
      : bytes(static_cast<std::uint8_t*>(buffer)),
        offsets(scale_offsets(Recipe::nvfp4, direction, groups, columns_of_matrix)),
        layout(as),
        rowwise(direction == Direction::rowwise),
        columns(columns_of_matrix) {}

  std::uint8_t* at(const RowBand& band, std::int64_t i, std::int64_t j) const {
    const std::int64_t blocks = ceil_div(ceil_div(rowwise ? columns : band.group_rows, kBlock), 4) * 4;
    const std::int64_t index = layout == ScaleLayout::swizzled ? swizzled_index(i, j, blocks / 4) : i * blocks + j;
    return bytes + offsets[static_cast<std::size_t>(band.group)] + index;
  }
};

void zero_bytes(std::uint8_t* bytes, std::int64_t count) {
  parallel_for(count, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

// Everything a piece needs besides its place.
struct Work {
  const QuantizeProblem& problem;
  const QuantizeOutput& output;
  Scales row_scales, column_scales;
  std::vector<TensorScaling> row_scaling, column_scaling;  // of each group
};

void quantize_rows_of(const Work& work, const RowBand& band, std::int64_t row, int rows, std::int64_t column, int columns,
                      Strip& strip) {
  const QuantizeConfig& config = work.problem.config;
  const std::int64_t first = (band.group_first_row + row) * work.problem.columns + column;
  if (config.stochastic_rounding) {
    for (int r = 0; r < rows; ++r) {
      std::memcpy(strip.random[r], work.problem.rowwise_random + first + r * work.problem.columns,
                  static_cast<std::size_t>(columns));
    }
  }
  quantize_rows(config, work.row_scaling[static_cast<std::size_t>(band.group)], rows, columns, strip);
  const int blocks = (columns + kBlock - 1) / kBlock;
  for (int r = 0; r < rows; ++r) {
    auto* data = static_cast<std::uint8_t*>(work.output.rowwise_data) + (first + r * work.problem.columns) / 2;
    std::memcpy(data, strip.row_bytes[r], static_cast<std::size_t>(columns / 2));
    for (int block = 0; block < blocks; block += 4) {  // four are neighbours in either layout
      std::memcpy(work.row_scales.at(band, row + r, column / kBlock + block), strip.row_scales[r] + block,
                  static_cast<std::size_t>(std::min(4, blocks - block)));
    }
  }
}

void quantize_columns_of(const Work& work, const RowBand& band, std::int64_t row, int rows, std::int64_t column,
                         int columns, Strip& strip) {
  const QuantizeProblem& problem = work.problem;
  const QuantizeConfig& config = problem.config;
  const std::int64_t group_first = band.group_first_row * problem.columns;
  if (config.hadamard) {
    const auto* x = static_cast<const std::uint16_t*>(problem.x) + group_first + row * problem.columns + column;
    hadamard_transform(config.hadamard_sign_mask, x, problem.columns, rows, columns, strip.transformed[0], kWidth);
    load_strip(Format::bf16, strip.transformed, 0, kWidth, rows, columns, config.zero_sign, strip.y);
  }
  // Element (row, column) of the group as stored.
  const auto stored = [&](int c) { return group_first + (column + c) * band.group_rows + row; };
  if (config.stochastic_rounding) {
    for (int c = 0; c < columns; ++c) {
      const std::uint8_t* random = problem.columnwise_random + stored(c);
      for (int r = 0; r < rows; ++r) strip.random[r][c] = random[r];
    }
  }
  quantize_columns(config, work.column_scaling[static_cast<std::size_t>(band.group)], rows, columns, strip);
  auto* data = static_cast<std::uint8_t*>(work.output.columnwise_data);
  for (int c = 0; c < columns; ++c) {
    std::memcpy(data + stored(c) / 2, &strip.column_bytes[c], static_cast<std::size_t>(rows / 2));
    *work.column_scales.at(band, column + c, row / kBlock) = strip.column_scales[c];
  }
}

std::vector<TensorScaling> scalings(std::span<const float> amax, float e4m3_max) {
  std::vector<TensorScaling> all;
  for (const float g : amax) all.emplace_back(g, e4m3_max);
  return all;
}

}  // namespace

void check_nvfp4_amax(const QuantizeProblem& problem) {
  const std::size_t groups = group_rows(problem).size();
  const auto check = [&](const float* amax, const std::string& name) {
    for (std::size_t t = 0; amax != nullptr && t < groups; ++t) {
      require(!(amax[t] < 0), name + "[" + show(t) + "]", amax[t], "a magnitude: 0 or more, or NaN");
    }
  };
  check(problem.amax, "amax");
  check(problem.columnwise_amax, "columnwise_amax");
}

void quantize_nvfp4(const QuantizeProblem& problem, const QuantizeOutput& output) {
  check_nvfp4_amax(problem);
  const QuantizeConfig& config = problem.config;
  const auto groups = group_rows(problem);
  const auto given = [&](const float* amax) { return std::vector<float>(amax, amax + groups.size()); };

  const bool own_columnwise = problem.columnwise_amax != nullptr || config.hadamard;
  std::vector<float> row_amax, column_amax;
  if (config.rowwise || !own_columnwise) {
    row_amax = problem.amax != nullptr ? given(problem.amax) : amax_of_groups(problem, groups);
  }
  if (config.columnwise) {
    column_amax = problem.columnwise_amax != nullptr ? given(problem.columnwise_amax)
                  : config.hadamard                  ? amax_of_transformed_groups(problem, groups)
                                                     : row_amax;
  }
  if (config.rowwise && output.amax != nullptr) std::copy(row_amax.begin(), row_amax.end(), output.amax);
  if (config.columnwise && output.columnwise_amax != nullptr) {
    std::copy(column_amax.begin(), column_amax.end(), output.columnwise_amax);
  }

  const Work work{problem,
                  output,
                  {output.rowwise_scale_inv, groups, problem.columns, Direction::rowwise, config.scale_layout},
                  {output.columnwise_scale_inv, groups, problem.columns, Direction::columnwise, config.scale_layout},
                  scalings(row_amax, config.nvfp4_e4m3_max),
                  scalings(column_amax, config.nvfp4_e4m3_max)};
  if (config.scale_layout == ScaleLayout::swizzled) {
    if (config.rowwise) zero_bytes(work.row_scales.bytes, work.row_scales.offsets.back());
    if (config.columnwise) zero_bytes(work.column_scales.bytes, work.column_scales.offsets.back());
  }

  const Pieces pieces(groups, problem.columns, kPieceRows, kWidth);
  const bool needs_x = config.rowwise || !config.hadamard;
  parallel_for(pieces.count(), kPiecesAtOnce, [&](std::int64_t begin, std::int64_t end) {
    Strip strip = {};  // lanes without an element are computed too, but never stored
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = pieces.band(index);
      const std::int64_t column = pieces.first_column(index);
      const int columns = static_cast<int>(pieces.columns_of(index));
      for (std::int64_t row = band.row; row < band.row + band.rows; row += kBlock) {
        const int rows = static_cast<int>(std::min<std::int64_t>(kBlock, band.row + band.rows - row));
        if (needs_x) {
          load_strip(problem.x_type, problem.x, (band.group_first_row + row) * problem.columns + column, problem.columns,
                     rows, columns, config.zero_sign, strip.x);
        }
        if (config.rowwise) quantize_rows_of(work, band, row, rows, column, columns, strip);
        if (config.columnwise) quantize_columns_of(work, band, row, rows, column, columns, strip);
      }
    }
  });
}

namespace {

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
      const auto code_at = [&](std::int64_t place) {
        return static_cast<std::uint8_t>(data[place / 2] >> (place % 2 * 4));
      };
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
