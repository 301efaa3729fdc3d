#pragma once
// Arithmetic on extents that throws on overflow. `argument` is what the error names, with its own `value`.

#include <cstdint>
#include <string_view>

#include "reference/types/error.h"

namespace assay {

// Extents are 0 or more, block sizes 1 or more.
constexpr std::int64_t ceil_div(std::int64_t extent, std::int64_t block) { return extent / block + (extent % block != 0); }

// `extent` rounded up to a multiple of `unit`.
inline std::int64_t round_up(std::int64_t extent, std::int64_t unit, std::string_view argument, std::int64_t value) {
  std::int64_t rounded = 0;
  require(!__builtin_mul_overflow(ceil_div(extent, unit), unit, &rounded), argument, value,
          "an extent that fits int64 with its padding");
  return rounded;
}

inline std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view argument, std::int64_t value) {
  std::int64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), argument, value, "a number of elements that fits int64");
  return product;
}

inline std::int64_t checked_sum(std::int64_t a, std::int64_t b, std::string_view argument, std::int64_t value) {
  std::int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), argument, value, "a total that fits int64");
  return sum;
}

}  // namespace assay
