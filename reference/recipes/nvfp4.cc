#include "reference/recipes/nvfp4.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reference/recipes/hadamard.h"
#include "reference/recipes/nvfp4_amax.h"
#include "reference/recipes/nvfp4_pieces.h"
#include "reference/recipes/nvfp4_strip.h"
#include "reference/recipes/random_draws.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"

namespace assay {
namespace {

using namespace nvfp4;

static_assert(std::endian::native == std::endian::little, "8 code bytes are stored as one word");

// Threads take pieces of kPieceRows by kWidth, so that 64 neighbouring bytes of the transposed codes of a column are written
// together. A piece is quantized strip by strip.
constexpr int kPieceRows = 128;

void zero_bytes(std::uint8_t* bytes, std::int64_t count) {
  parallel_for(count, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

// The random bytes of both directions, as the pieces read them.
struct RandomBytes {
  std::vector<std::uint8_t> drawn_rowwise, drawn_columnwise;
  const std::uint8_t *rowwise = nullptr, *columnwise = nullptr;

  RandomBytes(const QuantizeProblem& problem, std::span<const std::int64_t> groups) {
    rowwise = problem.rowwise_random;
    columnwise = problem.columnwise_random;
    const QuantizeDraws& draws = problem.draws;
    if (draws.assignment == RandomDraws::given) return;
    std::int64_t elements = 0;
    for (const std::int64_t rows : groups) elements += rows * problem.columns;
    if (problem.config.rowwise) drawn_rowwise.resize(static_cast<std::size_t>(elements));
    if (problem.config.columnwise) drawn_columnwise.resize(static_cast<std::size_t>(elements));
    std::int64_t first = 0;
    for (std::size_t t = 0; t < groups.size(); first += groups[t] * problem.columns, ++t) {
      if (groups[t] * problem.columns == 0) continue;
      const auto seed = static_cast<std::uint64_t>(draws.state[2 * t]),
                 offset = static_cast<std::uint64_t>(draws.state[2 * t + 1]);
      draw_bytes({draws.assignment, draws.rowwise, draws.columnwise, seed, offset, groups[t], problem.columns},
                 problem.config.rowwise ? drawn_rowwise.data() + first : nullptr,
                 problem.config.columnwise ? drawn_columnwise.data() + first : nullptr);
    }
    rowwise = drawn_rowwise.data();
    columnwise = drawn_columnwise.data();
  }
  RandomBytes(const RandomBytes&) = delete;
  RandomBytes& operator=(const RandomBytes&) = delete;
};

// Everything a piece needs besides its place.
struct Work {
  const QuantizeProblem& problem;
  const QuantizeOutput& output;
  Scales row_scales, column_scales;
  std::vector<TensorScaling> row_scaling, column_scaling;  // of each group
  const RandomBytes& random;
};

void quantize_rows_of(const Work& work, const RowBand& band, std::int64_t row, int rows, std::int64_t column, int columns,
                      Strip& strip) {
  const QuantizeConfig& config = work.problem.config;
  const std::int64_t first = (band.group_first_row + row) * work.problem.columns + column;
  if (config.stochastic_rounding) {
    for (int r = 0; r < rows; ++r) {
      std::memcpy(strip.random[r], work.random.rowwise + first + r * work.problem.columns, static_cast<std::size_t>(columns));
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

void quantize_columns_of(const Work& work, const RowBand& band, std::int64_t row, int rows, std::int64_t column, int columns,
                         Strip& strip) {
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
      const std::uint8_t* random = work.random.columnwise + stored(c);
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

  const RandomBytes random(problem, groups);
  const Work work{problem,
                  output,
                  {output.rowwise_scale_inv, groups, problem.columns, Direction::rowwise, config.scale_layout},
                  {output.columnwise_scale_inv, groups, problem.columns, Direction::columnwise, config.scale_layout},
                  scalings(row_amax, config.nvfp4_e4m3_max),
                  scalings(column_amax, config.nvfp4_e4m3_max),
                  random};
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
          load_strip(problem.x_type, problem.x, (band.group_first_row + row) * problem.columns + column, problem.columns, rows,
                     columns, config.zero_sign, strip.x);
        }
        if (config.rowwise) quantize_rows_of(work, band, row, rows, column, columns, strip);
        if (config.columnwise) quantize_columns_of(work, band, row, rows, column, columns, strip);
      }
    }
  });
}

}  // namespace assay
