#include <algorithm>

#include "reference/recipes/checks.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/element_scalar.h"

namespace assay::scalar {

void grouped_dbias(const DbiasProblem& problem, void* dbias) {
  check_dbias(problem, dbias);
  const auto groups = checked_group_rows(problem.rows, problem.columns, problem.grouped, problem.splits);
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < groups.size(); ++t) {
    const std::int64_t rows = groups[t];
    for (std::int64_t c = 0; c < problem.columns; ++c) {
      // Rows [from, to) of the group one after the other; none gives 0.
      const auto half = [&](std::int64_t from, std::int64_t to) {
        float sum = 0;
        for (std::int64_t r = from; r < std::min(to, rows); ++r) {
          sum = sum + load(problem.x_type, problem.x, (first_row + r) * problem.columns + c);
        }
        return sum;
      };
      float total = 0;
      for (std::int64_t r = 0; r < rows; r += 128) total = total + (half(r, r + 64) + half(r + 64, r + 128));
      store(problem.output_type, dbias, static_cast<std::int64_t>(t) * problem.columns + c, total);
    }
    first_row += rows;
  }
}

void quantize_dbias(const QuantizeProblem& problem, void* dbias) {
  scalar::grouped_dbias(
      {problem.x_type, problem.x, problem.rows, problem.columns, problem.grouped, problem.splits, problem.x_type}, dbias);
}

}  // namespace assay::scalar
