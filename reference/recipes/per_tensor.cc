#include "reference/recipes/per_tensor.h"

#include <algorithm>
#include <vector>

#include "reference/recipes/fp8_tile.h"
#include "reference/recipes/row_bands.h"
#include "reference/support/parallel.h"

namespace assay {
namespace {

using fast::kTile;

// Elements of x read by one task of a pass that runs straight through memory.
constexpr std::int64_t kRun = 1 << 16;

// A run of at most kRun elements that belong to one group.
struct Run {
  std::int64_t group, first, count;
};

std::vector<Run> runs_of(std::span<const std::int64_t> groups, std::int64_t columns) {
  std::vector<Run> runs;
  std::int64_t first = 0;
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const std::int64_t end = first + groups[t] * columns;
    for (; first < end; first += std::min(kRun, end - first)) {
      runs.push_back({static_cast<std::int64_t>(t), first, std::min(kRun, end - first)});
    }
  }
  return runs;
}

std::vector<float> group_amaxes(const QuantizeProblem& problem, std::size_t groups, const std::vector<Run>& runs) {
  std::vector<float> partial(runs.size());
  parallel_for(static_cast<std::int64_t>(runs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      partial[i] = fast::run_amax(problem.x_type, fast::element(problem.x_type, problem.x, runs[i].first), runs[i].count);
    }
  });
  std::vector<float> amax(groups, 0.0f);
  for (std::size_t i = 0; i < runs.size(); ++i) amax[runs[i].group] = std::max(amax[runs[i].group], partial[i]);
  return amax;
}

// Rowwise alone: straight through memory.
void encode_rowwise(const QuantizeProblem& problem, const std::vector<Run>& runs, const std::vector<float>& scales,
                    std::uint8_t* codes) {
  const fast::Fp8Cast cast = {problem.config.output, problem.config.zero_sign};
  parallel_for(static_cast<std::int64_t>(runs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Run& run = runs[i];
      fast::encode_run(cast, problem.x_type, fast::element(problem.x_type, problem.x, run.first), run.count, scales[run.group],
                       codes + run.first);
    }
  });
}

// Columnwise, and rowwise with it if requested: tile by tile.
void encode_tiles(const QuantizeProblem& problem, std::span<const std::int64_t> groups, const std::vector<float>& scales,
                  std::uint8_t* rowwise, std::uint8_t* columnwise) {
  const fast::Fp8Cast cast = {problem.config.output, problem.config.zero_sign};
  const std::int64_t columns = problem.columns, across = ceil_div(columns, kTile);
  if (across == 0) return;
  const RowBands bands(groups, kTile);
  parallel_for(bands.count() * across, 8, [&](std::int64_t begin, std::int64_t end) {
    fast::TileCodes codes;
    float row_scales[kTile];
    for (std::int64_t i = begin; i < end; ++i) {
      const RowBand band = bands[i / across];
      const std::int64_t first_column = i % across * kTile;
      const std::int64_t first = (band.group_first_row + band.row) * columns + first_column;
      const fast::Tile tile = {problem.x_type,
                               fast::element(problem.x_type, problem.x, first),
                               columns,
                               static_cast<int>(band.rows),
                               static_cast<int>(std::min<std::int64_t>(kTile, columns - first_column)),
                               i % across + 1 < across ? fast::element(problem.x_type, problem.x, first + kTile) : nullptr};
      std::fill_n(row_scales, tile.rows, scales[band.group]);
      fast::encode_rows(cast, tile, row_scales, codes.at[0], kTile);
      fast::transpose_codes(codes, tile.rows, tile.columns,
                            columnwise + band.group_first_row * columns + first_column * band.group_rows + band.row,
                            band.group_rows);
      if (rowwise == nullptr) continue;
      for (int r = 0; r < tile.rows; ++r) std::copy_n(codes.at[r], tile.columns, rowwise + first + r * columns);
    }
  });
}

}  // namespace

void quantize_per_tensor(const QuantizeProblem& problem, const QuantizeOutput& output) {
  const QuantizeConfig& config = problem.config;
  const std::vector<std::int64_t> groups = group_rows(problem);
  const std::vector<Run> runs = runs_of(groups, problem.columns);
  const bool given = config.recipe == Recipe::tensor_delayed;

  std::vector<float> scales(groups.size());
  if (given) std::copy_n(problem.scale, groups.size(), scales.begin());
  if (!given || output.amax != nullptr) {
    const std::vector<float> amax = group_amaxes(problem, groups.size(), runs);
    if (output.amax != nullptr) std::copy(amax.begin(), amax.end(), output.amax);
    for (std::size_t t = 0; !given && t < groups.size(); ++t) {
      scales[t] = scale_from_amax(amax[t], max_finite(config.output), config.force_pow_2_scales, config.amax_epsilon,
                                  max_finite(Format::f32));
    }
  }
  if (output.scale != nullptr && !given) std::copy(scales.begin(), scales.end(), output.scale);
  if (output.rowwise_scale_inv != nullptr) {
    for (std::size_t t = 0; t < groups.size(); ++t) {
      const float inverse = 1.0f / scales[t];
      static_cast<float*>(output.rowwise_scale_inv)[t] = inverse == inverse ? inverse : std::bit_cast<float>(0x7fff'ffffu);
    }
  }

  auto* const rowwise = config.rowwise ? static_cast<std::uint8_t*>(output.rowwise_data) : nullptr;
  if (config.columnwise) {
    encode_tiles(problem, groups, scales, rowwise, static_cast<std::uint8_t*>(output.columnwise_data));
  } else if (rowwise != nullptr) {
    encode_rowwise(problem, runs, scales, rowwise);
  }
}

}  // namespace assay
