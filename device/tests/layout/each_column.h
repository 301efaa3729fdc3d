#pragma once
// Where tests expect columns of codes to lie: by a formula of their own, not by that of device/layout/column_layout.h.

#include <cstdint>
#include <vector>

namespace assay::device {

struct ColumnPlace {
  std::int64_t dense, aligned;  // first byte, with an alignment of 1 and of 16
  std::int64_t rows, pitch;     // bytes of codes, and of an aligned column with what lies behind them
};

// Calls `visit` with the place of each column of each group, in order.
template <class Visit>
void each_column(const std::vector<std::int64_t>& splits, std::int64_t columns, Visit visit) {
  const auto to_16 = [](std::int64_t rows) { return (rows + 15) & ~std::int64_t{15}; };
  std::int64_t first_row = 0, group = 0;
  for (const std::int64_t rows : splits) {
    const std::int64_t pitch = to_16(rows), before = to_16(first_row) + 16 * group++;
    for (std::int64_t j = 0; j < columns; ++j)
      visit(ColumnPlace{first_row * columns + j * rows, before * columns + j * pitch, rows, pitch});
    first_row += rows;
  }
}

}  // namespace assay::device
