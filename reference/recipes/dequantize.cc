#include "reference/recipes/dequantize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/checks.h"
#include "reference/recipes/dequantize_checks.h"
#include "reference/recipes/fp8_tile.h"
#include "reference/recipes/mxfp8.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/row_bands.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

using fast::kTile;

struct F32Output {
  using Storage = float;
  static ASSAY_INLINE float round(float y) { return y == y ? y : std::bit_cast<float>(0x7fff'ffffu); }
};
struct Bf16Output {
  using Storage = std::uint16_t;
  static ASSAY_INLINE std::uint16_t round(float y) { return fast::encode_bf16(y); }
};
struct F16Output {
  using Storage = std::uint16_t;
  static ASSAY_INLINE std::uint16_t round(float y) { return fast::encode_f16(y); }
};

// One row of a tile: one scale for the row or, if `scales` is not null, one for each column.
template <class Output>
ASSAY_INLINE void decode_row(bool e4m3, const std::uint8_t* __restrict codes, int count, float scale,
                             const float* __restrict scales, typename Output::Storage* __restrict y) {
  if (e4m3) {
    if (scales == nullptr) {
      for (int c = 0; c < count; ++c) y[c] = Output::round(fast::decode_e4m3(codes[c]) * scale);
    } else {
      for (int c = 0; c < count; ++c) y[c] = Output::round(fast::decode_e4m3(codes[c]) * scales[c]);
    }
  } else {
    if (scales == nullptr) {
      for (int c = 0; c < count; ++c) y[c] = Output::round(fast::decode_e5m2(codes[c]) * scale);
    } else {
      for (int c = 0; c < count; ++c) y[c] = Output::round(fast::decode_e5m2(codes[c]) * scales[c]);
    }
  }
}

// Element `i` of y is the first of `count`.
ASSAY_CLONES void decode_to(Format output, bool e4m3, const std::uint8_t* codes, int count, float scale, const float* scales,
                            void* y, std::int64_t i) {
  switch (output) {
    case Format::bf16: return decode_row<Bf16Output>(e4m3, codes, count, scale, scales, static_cast<std::uint16_t*>(y) + i);
    case Format::f16: return decode_row<F16Output>(e4m3, codes, count, scale, scales, static_cast<std::uint16_t*>(y) + i);
    default: return decode_row<F32Output>(e4m3, codes, count, scale, scales, static_cast<float*>(y) + i);
  }
}

// Scales of a tile, in the terms of decode_row: the scale of row r is first[r * row_step], or first[c] that of column
// c.
struct TileScales {
  const float* first;
  std::int64_t row_step;
  bool by_column;
};

TileScales tile_scales(const DequantizeProblem& problem, const float* scales, const RowBand& band, std::int64_t across) {
  const bool rowwise = problem.direction == Direction::rowwise;
  const std::int64_t stride = scale_shape(problem.recipe, problem.direction, band.group_rows, problem.columns).columns;
  const std::int64_t down = band.row / kTile;
  if (problem.recipe == Recipe::block_1x128) {
    if (rowwise) return {scales + across * stride + band.row, 1, false};
    return {scales + down * stride + across * kTile, 0, true};
  }
  if (problem.recipe == Recipe::block_128x128) {
    return {scales + (rowwise ? down * stride + across : across * stride + down), 0, false};
  }
  return {scales, 0, false};
}

void dequantize_fp8(const DequantizeProblem& problem, std::span<const std::int64_t> groups, void* output) {
  const std::int64_t columns = problem.columns, tiles_across = ceil_div(columns, kTile);
  if (tiles_across == 0) return;
  const RowBands bands(groups, kTile);
  const auto offsets = scale_offsets(problem.recipe, problem.direction, groups, columns);
  const auto* const data = static_cast<const std::uint8_t*>(problem.data);
  const bool e4m3 = problem.data_type == Format::e4m3;

  parallel_for(bands.count() * tiles_across, 8, [&](std::int64_t begin, std::int64_t end) {
    fast::TileCodes stored, straight;
    for (std::int64_t i = begin; i < end; ++i) {
      const RowBand band = bands[i / tiles_across];
      const std::int64_t across = i % tiles_across, first_column = across * kTile;
      const auto rows = static_cast<int>(band.rows);
      const auto width = static_cast<int>(std::min<std::int64_t>(kTile, columns - first_column));
      const std::int64_t first = (band.group_first_row + band.row) * columns + first_column;

      const std::uint8_t* codes = data + first;
      std::int64_t stride = columns;
      if (problem.direction == Direction::columnwise) {
        const std::uint8_t* from = data + band.group_first_row * columns + first_column * band.group_rows + band.row;
        for (int c = 0; c < width; ++c) std::memcpy(stored.at[c], from + c * band.group_rows, band.rows);
        fast::transpose_codes(stored, width, rows, straight.at[0], kTile);
        codes = straight.at[0];
        stride = kTile;
      }
      const TileScales scales =
          tile_scales(problem, static_cast<const float*>(problem.scale_inv) + offsets[band.group], band, across);
      for (int r = 0; r < rows; ++r) {
        decode_to(problem.output_type, e4m3, codes + r * stride, width, scales.first[r * scales.row_step],
                  scales.by_column ? scales.first : nullptr, output, first + r * columns);
      }
    }
  });
}

}  // namespace

std::vector<std::int64_t> check_dequantize(const DequantizeProblem& problem, const void* output) {
  const std::string name(name_of(problem.recipe));
  const bool nvfp4 = problem.recipe == Recipe::nvfp4, small_blocks = nvfp4 || problem.recipe == Recipe::mxfp8;
  require(problem.direction <= Direction::columnwise, "direction", static_cast<std::uint32_t>(problem.direction),
          "rowwise (0) or columnwise (1)");
  require(problem.output_type == Format::bf16 || problem.output_type == Format::f16 || problem.output_type == Format::f32,
          "output_type", name_of(problem.output_type), "bf16, f16 or f32");
  if (nvfp4) {
    require(problem.data_type == Format::e2m1, "data_type", name_of(problem.data_type), "e2m1 for nvfp4");
  } else {
    require(problem.data_type == Format::e4m3 || problem.data_type == Format::e5m2, "data_type", name_of(problem.data_type),
            "e4m3 or e5m2 for " + name);
  }
  require(problem.scale_layout == ScaleLayout::compact || (problem.scale_layout == ScaleLayout::swizzled && small_blocks),
          "scale_layout", static_cast<std::uint32_t>(problem.scale_layout), "compact (0) for " + name);
  require(problem.nvfp4_e4m3_max == 448 || (nvfp4 && problem.nvfp4_e4m3_max == 256), "nvfp4_e4m3_max", problem.nvfp4_e4m3_max,
          nvfp4 ? "448 or 256" : "448 for " + name);

  auto groups = checked_group_rows(problem.rows, problem.columns, problem.grouped, problem.splits);
  std::int64_t used_rows = 0;
  for (const std::int64_t rows : groups) used_rows += rows;
  if (nvfp4 && problem.direction == Direction::rowwise) {
    require(problem.columns % 2 == 0, "columns", problem.columns, "an even number for rowwise nvfp4");
  }
  for (std::size_t t = 0; nvfp4 && problem.direction == Direction::columnwise && t < groups.size(); ++t) {
    if (groups[t] % 2 == 0) continue;
    throw InvalidArgument(problem.grouped ? "splits[" + show(t) + "]" : "rows", show(groups[t]),
                          "an even number for columnwise nvfp4");
  }

  const std::int64_t elements = used_rows * problem.columns;
  const std::int64_t scales = scale_offsets(problem.recipe, problem.direction, groups, problem.columns).back();
  checked_product(scales, 8, "columns", problem.columns);
  require_buffer(problem.data, elements, 1, "data");
  if (elements != 0) {
    require_buffer(problem.scale_inv, scales, static_cast<std::size_t>(bytes_of(scale_format(problem.recipe), 1)), "scale_inv");
    if (nvfp4) require_buffer(problem.amax, static_cast<std::int64_t>(groups.size()), sizeof(float), "amax");
    require_buffer(output, elements, static_cast<std::size_t>(bytes_of(problem.output_type, 1)), "output");
  }
  return groups;
}

void dequantize(const DequantizeProblem& problem, void* output) {
  const auto groups = check_dequantize(problem, output);
  switch (problem.recipe) {
    case Recipe::mxfp8: return dequantize_mxfp8(problem, output);
    case Recipe::nvfp4: return dequantize_nvfp4(problem, output);
    default: return dequantize_fp8(problem, groups, output);
  }
}

}  // namespace assay
