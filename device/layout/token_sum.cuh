#pragma once
// The sum over the choices of a token (spec token-permutation-1.2), one element at a time. Every function is a host function too.
// Internal to this folder.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "reference/layout/token_permutation.h"

namespace assay::device {

// What a value of f32 is stored as, and the value of that.
template <Format type>
ASSAY_BOTH std::uint32_t code_of_sum(float value) {
  if constexpr (type == Format::bf16) return encode_bf16(value);
  if constexpr (type == Format::f16) return encode_f16(value);
  return bits_of_float(stored_float(value));
}
template <Format type>
ASSAY_BOTH float rounded_to(float value) {
  return Element<type>::widen_one(code_of_sum<type>(value));
}

// w * v + acc rounded once to a type of 16 bits, in which all three are. Both steps before that round to odd: they cut off, and set
// the last bit where anything was lost, so that the final rounding sees on which side of a tie the sum is (double has 53 bits and
// f32 24, the type at most 11).
template <Format type>
ASSAY_BOTH float fused_in(float weight, float value, float acc) {
  const double product = static_cast<double>(weight) * static_cast<double>(value);  // exact: 22 bits
  double sum = product + static_cast<double>(acc);
  const double of_acc = sum - product, lost = (product - (sum - of_acc)) + (static_cast<double>(acc) - of_acc);  // exact
  auto bits = __builtin_bit_cast(std::uint64_t, sum);
  const bool finite = (bits >> 52 & 0x7FF) != 0x7FF;
  if (finite && lost != 0 && (bits & 1) == 0) {
    bits += (lost < 0) == (bits >> 63 != 0) ? 1 : ~std::uint64_t{0};  // the neighbour that `lost` points to is odd
    sum = __builtin_bit_cast(double, bits);
  }
  std::uint32_t narrow = bits_of_float(static_cast<float>(sum));
  const double back = static_cast<double>(float_of_bits(narrow));
  if (finite && back != sum) {
    const bool too_large = (back < 0 ? -back : back) > (sum < 0 ? -sum : sum);
    narrow = (too_large ? narrow - 1 : narrow) | 1;
  }
  return rounded_to<type>(float_of_bits(narrow));
}

// The sum after one more choice. `weight` is that of the choice, or 1.
template <Format type, TokenSums sums>
ASSAY_BOTH float with_choice(float acc, float weight, float value) {
  constexpr bool kInType = type != Format::f32 && (sums == TokenSums::in_type || sums == TokenSums::fma_in_type);
  constexpr bool kFused = sums == TokenSums::fma_f32 || sums == TokenSums::fma_in_type;
  if constexpr (!kInType) return kFused ? fused(weight, value, acc) : add(acc, multiply(weight, value));
  if constexpr (kInType && kFused) return fused_in<type>(rounded_to<type>(weight), value, acc);
  if constexpr (kInType && !kFused)
    return rounded_to<type>(add(acc, rounded_to<type>(multiply(rounded_to<type>(weight), value))));
}

}  // namespace assay::device
