#pragma once
// A sum without a loss, in fixed point.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace assay {

// Terms are significand * 2^exponent with exponents of -280 or more and values below 2^288: bf16 products, and any f32.
class ExactSum {
 public:
  void add(std::int64_t significand, int exponent) {
    const int at = exponent - kLowest;
    const auto word = static_cast<std::size_t>(at / 32);
    // A signed digit of 32 bits and more for each word; carries are settled at the end.
    const __int128 moved = static_cast<__int128>(significand) << (at % 32);
    for (std::size_t i = 0; i < 3; ++i)
      digits_[word + i] += static_cast<std::int64_t>(static_cast<std::uint32_t>(moved >> (32 * i)));
    digits_[word + 3] += static_cast<std::int64_t>(moved >> 96);
  }

  // The nearest f32 of the sum, ties to even; 2^128 and more is infinity, and a sum of zero is +0.
  std::uint32_t nearest_f32() const {
    std::array<std::int64_t, kWords> digits = digits_;
    const bool negative = settle(digits);
    if (negative) {
      for (std::int64_t& digit : digits) digit = -digit;
      settle(digits);
    }
    const auto first = std::find_if(digits.rbegin(), digits.rend(), [](std::int64_t digit) { return digit != 0; });
    if (first == digits.rend()) return 0;
    const auto below_first = static_cast<int>(digits.rend() - first) - 1;  // digits below the first one that is not 0
    const int leading = 32 * below_first + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(*first))) - 1;
    const int lowest = std::max(leading + kLowest, -126) - 23 - kLowest;  // the last bit that is kept
    const auto bit = [&](int at) { return digits[static_cast<std::size_t>(at / 32)] >> (at % 32) & 1; };
    std::uint32_t kept = 0;
    for (int at = leading; at >= lowest; --at) kept = kept << 1 | static_cast<std::uint32_t>(bit(at));
    const bool half = bit(lowest - 1) != 0;
    bool below = false;
    for (int at = 0; at < lowest - 1 && !below; ++at) below = bit(at) != 0;
    if (half && (below || kept % 2 == 1)) ++kept;
    // A carry out of the fraction moves the exponent up by itself; a subnormal has exponent field 0 and no hidden bit.
    const std::uint32_t field = static_cast<std::uint32_t>(lowest + kLowest + 149);
    const std::uint32_t code = (field << 23) + kept;
    const std::uint32_t sign = negative ? 0x80000000u : 0;
    return sign | std::min(code, 0x7F800000u);
  }

 private:
  static constexpr int kLowest = -320;
  static constexpr std::size_t kWords = 22;

  // Makes every digit but the last one lie in [0, 2^32). Returns whether the sum is negative.
  static bool settle(std::array<std::int64_t, kWords>& digits) {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      digits[i] += carry;
      carry = 0;
      if (i + 1 == kWords) break;
      carry = digits[i] >> 32;
      digits[i] -= carry * (std::int64_t{1} << 32);
    }
    return digits.back() < 0;
  }

  std::array<std::int64_t, kWords> digits_{};
};

}  // namespace assay
