#pragma once
// Internal to the patterns: the random numbers and settings that they use.

#include <algorithm>
#include <array>
#include <cstdint>

#include "conformance/generate/compose.h"
#include "conformance/generate/patterns.h"
#include "conformance/support/counter_random.h"

namespace assay::conformance {

// Values that a pattern needs, computed once per tensor.
struct Source {
  const PatternRequest& request;
  FormatFields fields = fields_of(request.type);
  FormatFields target = fields_of(request.target);
  CounterRandom element{request.seed, request.tensor};
  CounterRandom stripe{request.seed, request.tensor + "#stripe"};  // one draw for a row, a column block, ...
  CounterRandom shared{request.seed, "#pairs"};                    // the same for both operands of a product
  bool is_code = fields.bits <= 8;
  // Codes fill the format's range, as quantized data do; other values are around 1.
  int scale = !is_code ? 0 : request.type == Format::e2m1 ? 3 : 8;

  // Random words of the current row are computed in runs. `ahead` holds those of its columns [ahead_first, ahead_end).
  std::int64_t row_at_hand = -1;
  mutable std::int64_t ahead_first = 0, ahead_end = 0;
  mutable WordRun ahead = WordRun();
  void begin_row(std::int64_t row) {
    row_at_hand = row;
    ahead_first = ahead_end = 0;
  }
  Words draw(std::int64_t row, std::int64_t column) const {
    if (row != row_at_hand || column < 0 || column >= request.columns) {
      return element.words(static_cast<std::uint64_t>(row * request.columns + column));
    }
    if (column < ahead_first || column >= ahead_end) {
      constexpr auto kMax = static_cast<std::int64_t>(WordRun::kMax);
      ahead_first = column / kMax * kMax;
      ahead_end = std::min(ahead_first + kMax, request.columns);
      element.fill(static_cast<std::uint64_t>(row * request.columns + ahead_first),
                   static_cast<std::size_t>(ahead_end - ahead_first), ahead);
    }
    const auto at = static_cast<std::size_t>(column - ahead_first);
    return {ahead.words[0][at], ahead.words[1][at], ahead.words[2][at], ahead.words[3][at]};
  }
  // A random word for a cell of a coarse grid: neighbours share it.
  std::uint32_t grid(std::int64_t row, std::int64_t column) const {
    const std::uint64_t index = (static_cast<std::uint64_t>(row) << 32) ^ static_cast<std::uint64_t>(column + 1);
    Asked& kept = asked[(index ^ index >> 32) % asked.size()];
    if (!kept.known || kept.index != index) kept = {true, index, stripe.word(index)};
    return kept.word;
  }
  struct Asked {
    bool known = false;
    std::uint64_t index = 0;
    std::uint32_t word = 0;
  };
  mutable std::array<Asked, 16> asked = {};
  std::int64_t k(std::int64_t row, std::int64_t column) const {
    if (!request.contract_rows) return column;
    return request.position ? request.position(row) : row;
  }
  // The axis that is not summed over.
  std::int64_t free(std::int64_t row, std::int64_t column) const { return request.contract_rows ? column : row; }
  std::uint32_t one(int exponent) const { return compose(fields, false, 1, exponent); }
};

inline std::uint32_t pick(std::uint32_t word, std::uint32_t bound) { return CounterRandom::scale(word, bound); }

// u * 2^(scale + shift), u uniform in (-1, 1) in 24 bits.
inline std::uint32_t uniform_bits(const Source& s, const Words& w, int shift = 0) {
  return compose(s.fields, w[1] >> 31, w[0] >> 8, s.scale + shift - 24);
}

// One peak in every `block` neighbours along a row and along a column, wherever the count starts.
inline bool is_peak(const Source& s, std::int64_t row, std::int64_t column) { return (row + column) % s.request.block == 0; }

// Special values and edges of the number range: special_patterns.cc.
std::uint32_t special(const Source& s, const Words& w, bool with_infinity);
std::uint32_t first_specials(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t subnormals(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_infinities(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_transform(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_gates(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_cancelling(const Source& s, std::int64_t row, std::int64_t column);

// adversarial_patterns.cc
std::uint32_t adversarial_amax(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_eps(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_four_over_six(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_dbias(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_output_ties(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_alignment(const Source& s, std::int64_t row, std::int64_t column);
std::uint32_t adversarial_promotion(const Source& s, std::int64_t row, std::int64_t column);

// unit_probes.cc
std::uint32_t unit_probe(const Source& s, std::int64_t row, std::int64_t column);

// step_edges.cc
std::uint32_t step_edges(const Source& s, std::int64_t row, std::int64_t column);

// thresholds.cc
std::uint32_t adversarial_thresholds(const Source& s, std::int64_t row, std::int64_t column);

}  // namespace assay::conformance
