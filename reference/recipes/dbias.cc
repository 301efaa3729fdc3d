#include "reference/recipes/dbias.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/checks.h"
#include "reference/recipes/fp8_tile.h"
#include "reference/formats/x_types.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay {
namespace {

// Columns summed side by side by one task: the sums stay in the nearest cache while the rows pass by.
constexpr std::int64_t kStrip = 256;

// total[c] for `count` columns of a group. Each column has its own sum, so any number of them can be taken at once.
struct SumStrip {
  const void* x;
  std::int64_t stride, rows, count;
  float* __restrict total;

  template <class X>
  ASSAY_INLINE void run() const {
    alignas(64) float half[2][kStrip];
    std::fill_n(total, count, 0.0f);
    for (std::int64_t tile = 0; tile < rows; tile += 128) {
      for (int h = 0; h < 2; ++h) {
        float* __restrict const sum = half[h];
        std::fill_n(sum, count, 0.0f);
        const std::int64_t first = tile + 64 * h, end = std::min(first + 64, rows);
        for (std::int64_t r = first; r < end; ++r) {
          const auto* const row = static_cast<const typename X::Storage*>(x) + r * stride;
          for (std::int64_t c = 0; c < count; ++c) sum[c] += X::widen(row[c]);
        }
      }
      for (std::int64_t c = 0; c < count; ++c) total[c] += half[0][c] + half[1][c];
    }
  }
};

ASSAY_CLONES void sum_strip(Format type, const SumStrip& strip) { fast::with_x_type(type, strip); }

void round_strip(Format type, const float* total, std::int64_t count, void* dbias, std::int64_t first) {
  for (std::int64_t c = 0; c < count; ++c) {
    switch (type) {
      case Format::bf16: static_cast<std::uint16_t*>(dbias)[first + c] = fast::encode_bf16(total[c]); break;
      case Format::f16: static_cast<std::uint16_t*>(dbias)[first + c] = fast::encode_f16(total[c]); break;
      default: static_cast<float*>(dbias)[first + c] = total[c] == total[c] ? total[c] : std::bit_cast<float>(0x7fff'ffffu);
    }
  }
}

// Sums each strip of columns of a group.
void sum_groups(const DbiasProblem& problem, std::span<const std::int64_t> groups, void* dbias) {
  std::vector<std::int64_t> first_row = {0};
  for (const std::int64_t rows : groups) first_row.push_back(first_row.back() + rows);
  const std::int64_t columns = problem.columns, strips = ceil_div(columns, kStrip);
  parallel_for(static_cast<std::int64_t>(groups.size()) * strips, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float total[kStrip];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t group = i / strips, column = i % strips * kStrip;
      const std::int64_t count = std::min(kStrip, columns - column);
      const void* const first = fast::element(problem.x_type, problem.x, first_row[group] * columns + column);
      sum_strip(problem.x_type, {first, columns, groups[group], count, total});
      round_strip(problem.output_type, total, count, dbias, group * columns + column);
    }
  });
}

void require_float_type(Format type, std::string_view name) {
  require(type == Format::bf16 || type == Format::f16 || type == Format::f32, name, name_of(type), "bf16, f16 or f32");
}

}  // namespace

void check_dbias(const DbiasProblem& problem, const void* dbias) {
  require_float_type(problem.x_type, "x_type");
  require_float_type(problem.output_type, "output_type");
  const auto groups = checked_group_rows(problem.rows, problem.columns, problem.grouped, problem.splits);
  std::int64_t used_rows = 0;
  for (const std::int64_t rows : groups) used_rows += rows;
  const auto size = [](Format type) { return static_cast<std::size_t>(bytes_of(type, 1)); };
  const std::int64_t sums =
      checked_product(static_cast<std::int64_t>(groups.size()), problem.columns, "columns", problem.columns);
  checked_product(sums, 8, "columns", problem.columns);
  require_buffer(problem.x, used_rows * problem.columns, size(problem.x_type), "x");
  require_buffer(dbias, sums, size(problem.output_type), "dbias");
}

void grouped_dbias(const DbiasProblem& problem, void* dbias) {
  check_dbias(problem, dbias);
  sum_groups(problem, checked_group_rows(problem.rows, problem.columns, problem.grouped, problem.splits), dbias);
}

void quantize_dbias(const QuantizeProblem& problem, void* dbias) {
  grouped_dbias({problem.x_type, problem.x, problem.rows, problem.columns, problem.grouped, problem.splits, problem.x_type},
                dbias);
}

}  // namespace assay
