#include "reference/recipes/nvfp4_amax.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/hadamard.h"
#include "reference/recipes/nvfp4_pieces.h"
#include "reference/support/parallel.h"
#include "reference/support/simd.h"

namespace assay::nvfp4 {
namespace {

// Magnitudes moved up so that the largest that is not NaN is the largest signed integer: NaN becomes negative, and the
// maximum is a plain one.
template <class Code, class Signed, Code kInfinity>
ASSAY_INLINE Code largest_code(const Code* __restrict codes, std::int64_t count) {
  constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  constexpr Code kOffset = kMagnitude - kInfinity;
  Signed largest = static_cast<Signed>(kOffset);  // 0
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, static_cast<Signed>(static_cast<Code>((codes[i] & kMagnitude) + kOffset)));
  }
  return static_cast<Code>(static_cast<Code>(largest) - kOffset);
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
  void accumulate(std::int64_t group, std::uint32_t bits) {  // a maximum: the order does not matter
    std::atomic<std::uint32_t>& largest = bits_[static_cast<std::size_t>(group)];
    std::uint32_t seen = largest.load(std::memory_order_relaxed);
    while (seen < bits && !largest.compare_exchange_weak(seen, bits, std::memory_order_relaxed)) {}
  }
  std::vector<float> values() const {
    std::vector<float> values;
    for (const auto& bits : bits_) values.push_back(std::bit_cast<float>(bits.load()));
    return values;
  }

 private:
  std::vector<std::atomic<std::uint32_t>> bits_;
};

}  // namespace

std::vector<float> amax_of_groups(const QuantizeProblem& problem, std::span<const std::int64_t> groups) {
  GroupAmax amax(groups.size());
  const Pieces pieces(groups, problem.columns, 16, 4096);
  parallel_for(pieces.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const RowBand band = pieces.band(index);
      for (std::int64_t row = 0; row < band.rows; ++row) {
        const std::int64_t first = (band.group_first_row + band.row + row) * problem.columns + pieces.first_column(index);
        amax.accumulate(band.group, largest_magnitude(problem.x_type, problem.x, first, pieces.columns_of(index)));
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
      hadamard_transform(problem.config.hadamard_sign_mask, x + first, problem.columns, band.rows, columns, y.data(), columns);
      amax.accumulate(band.group, largest_magnitude(Format::bf16, y.data(), 0, band.rows * columns));
    }
  });
  return amax.values();
}

}  // namespace assay::nvfp4
