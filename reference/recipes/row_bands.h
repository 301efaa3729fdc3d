#pragma once
// The rows of ragged groups divided into bands of at most `height` rows, each within one group. Threads take bands, so that
// the division of work depends on the shapes alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/types/sizes.h"

namespace assay {

struct RowBand {
  std::int64_t group = 0;
  std::int64_t group_first_row = 0;  // of the whole matrix
  std::int64_t group_rows = 0;
  std::int64_t row = 0;   // first row of the band, counted in the group
  std::int64_t rows = 0;  // 1 to height
};

class RowBands {
 public:
  RowBands(std::span<const std::int64_t> group_rows, std::int64_t height) : height_(height) {
    for (const std::int64_t rows : group_rows) {
      first_row_.push_back(first_row_.back() + rows);
      first_band_.push_back(first_band_.back() + ceil_div(rows, height));
    }
  }

  std::int64_t count() const { return first_band_.back(); }

  // 0 <= band < count(). Groups without rows have no band.
  RowBand operator[](std::int64_t band) const {
    const auto after = std::upper_bound(first_band_.begin(), first_band_.end(), band);
    const auto group = static_cast<std::size_t>(after - first_band_.begin()) - 1;
    const std::int64_t rows = first_row_[group + 1] - first_row_[group];
    const std::int64_t row = (band - first_band_[group]) * height_;
    return {static_cast<std::int64_t>(group), first_row_[group], rows, row, std::min(height_, rows - row)};
  }

 private:
  std::int64_t height_;
  std::vector<std::int64_t> first_row_ = {0}, first_band_ = {0};
};

}  // namespace assay
