#include <vector>

#include "reference/recipes/dequantize.h"
#include "reference/recipes/dequantize_checks.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/mxfp8.h"
#include "reference/recipes/nvfp4.h"

namespace assay::scalar {
namespace {

// Place of the scale of element (r, c) in the group's own scale matrix.
std::int64_t scale_index(Recipe recipe, Direction direction, std::int64_t stride, std::int64_t r, std::int64_t c) {
  const bool rowwise = direction == Direction::rowwise;
  if (recipe == Recipe::block_1x128) return rowwise ? c / 128 * stride + r : r / 128 * stride + c;
  if (recipe == Recipe::block_128x128) return rowwise ? r / 128 * stride + c / 128 : c / 128 * stride + r / 128;
  return 0;  // one for the group
}

void dequantize_fp8(const DequantizeProblem& problem, std::span<const std::int64_t> groups, void* output) {
  const std::int64_t columns = problem.columns;
  if (columns == 0) return;
  const auto offsets = scale_offsets(problem.recipe, problem.direction, groups, columns);
  std::int64_t base = 0;  // first element of the group
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const std::int64_t rows = groups[t];
    const float* scales = static_cast<const float*>(problem.scale_inv) + offsets[t];
    const std::int64_t stride = scale_shape(problem.recipe, problem.direction, rows, columns).columns;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t place = problem.direction == Direction::rowwise ? r * columns + c : c * rows + r;
        const float code = decode_fp8(problem.data_type, static_cast<const std::uint8_t*>(problem.data)[base + place]);
        const float scale = scales[scale_index(problem.recipe, problem.direction, stride, r, c)];
        store(problem.output_type, output, base + r * columns + c, code * scale);
      }
    }
    base += rows * columns;
  }
}

}  // namespace

void dequantize(const DequantizeProblem& problem, void* output) {
  const auto groups = check_dequantize(problem, output);
  switch (problem.recipe) {
    case Recipe::mxfp8: return scalar::dequantize_mxfp8(problem, output);
    case Recipe::nvfp4: return scalar::dequantize_nvfp4(problem, output);
    default: return dequantize_fp8(problem, groups, output);
  }
}

}  // namespace assay::scalar
