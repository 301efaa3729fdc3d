#pragma once
// Layer (b) of the formats, one element at a time: integer arithmetic without branches, made to be inlined into loops
// that the compiler vectorises (ASSAY_CLONES in reference/support/simd.h). e4m3.h, e5m2.h, ... in this folder define each
// code; these functions equal those for every input, and share no code with them.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/support/simd.h"

namespace assay::fast {

inline constexpr std::uint32_t kMagnitude = 0x7fff'ffff;  // all but the sign
inline constexpr std::uint32_t kInfinity = 0x7f80'0000;   // magnitudes above this are NaN
inline constexpr std::uint32_t kQuietNan = 0x7fc0'0000;

// Magnitudes of floats sort as their bits do, so max |x| is an integer maximum of these. NaN counts as 0.
ASSAY_INLINE std::uint32_t magnitude_or_zero(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & kMagnitude;
  return magnitude > kInfinity ? 0u : magnitude;
}

// The same for a maximum over an array, where a branch would stop the vectoriser: an integer that sorts as |x| does, with
// every NaN below kZeroRank, the rank of 0. Infinity has the largest one, so NaN wraps to the negative ones.
inline constexpr std::int32_t kZeroRank = 0x7fff'ffff - 0x7f80'0000;
ASSAY_INLINE std::int32_t rank_of(float x) {
  return static_cast<std::int32_t>((std::bit_cast<std::uint32_t>(x) & kMagnitude) + static_cast<std::uint32_t>(kZeroRank));
}
// |x| from its rank, which is at least kZeroRank.
ASSAY_INLINE float magnitude_of_rank(std::int32_t rank) { return std::bit_cast<float>(rank - kZeroRank); }

// Rounds a float's magnitude bits to a format of kMantissa fraction bits and bias kBias; magnitudes past kLargest (the
// bits of a float) count as kLargest, NaN too.
//
// In the binade e of x (the lowest normal one for subnormals), codes are steps of 2^(e-mantissa). A float M with that
// ulp makes the addition x + M round to whole steps, ties to even, and leaves their number in the low bits of the sum:
//
//   M = 2^(e-mantissa+23) with the first code of the binade, (e-emin) << mantissa, in its low bits (an even number)
//   low bits of x + M = (e-emin) * 2^mantissa + RNE(x / 2^(e-mantissa)) = code
//
// The caller removes the bits above the code.
template <int kMantissa, int kBias, std::uint32_t kLargest>
ASSAY_INLINE std::uint32_t round_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t kMinNormal = static_cast<std::uint32_t>(128 - kBias) << 23;  // 2^(1-bias)
  constexpr std::uint32_t kUlpIsStep = static_cast<std::uint32_t>(23 - kMantissa) << 23;
  const std::uint32_t x = std::min(magnitude, kLargest);
  const std::uint32_t binade = std::max(x & kInfinity, kMinNormal);
  const std::uint32_t m = binade + (binade >> (23 - kMantissa)) + (kUlpIsStep - (kMinNormal >> (23 - kMantissa)));
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + std::bit_cast<float>(m));
}

constexpr std::uint32_t float_bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// The last kBits bits: x's sign above the low bits of `rounded`, or `nan` if x is NaN. The code is put together at the
// top of the word and shifted down, so that a vectorised loop narrows one vector instead of sign and magnitude each.
template <int kBits>
ASSAY_INLINE std::uint32_t with_sign(float x, std::uint32_t rounded, std::uint32_t nan) {
  constexpr int kShift = 32 - kBits;
  const std::uint32_t code = ((rounded << kShift) & kMagnitude) | (float_bits(x) & ~kMagnitude);
  return (x != x ? nan << kShift : code) >> kShift;
}

// The same for formats without -0, whose NaN has the code that -0 would have.
template <int kBits>
ASSAY_INLINE std::uint32_t with_sign_of_nonzero(float x, std::uint32_t rounded) {
  constexpr int kShift = 32 - kBits;
  const std::uint32_t magnitude = (rounded << kShift) & kMagnitude;
  const std::uint32_t code = magnitude == 0 ? 0u : magnitude | (float_bits(x) & ~kMagnitude);
  return (x != x ? ~kMagnitude : code) >> kShift;
}

ASSAY_INLINE std::uint8_t encode_e4m3(float x) {
  const std::uint32_t rounded = round_magnitude<3, 7, float_bits(448.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign<8>(x, rounded, 0x7F));
}

ASSAY_INLINE std::uint8_t encode_e5m2(float x) {
  const std::uint32_t rounded = round_magnitude<2, 15, float_bits(57344.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign<8>(x, rounded, 0x7F));
}

ASSAY_INLINE std::uint8_t encode_e4m3_fnuz(float x) {
  const std::uint32_t rounded = round_magnitude<3, 8, float_bits(240.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign_of_nonzero<8>(x, rounded));
}

ASSAY_INLINE std::uint8_t encode_e5m2_fnuz(float x) {
  const std::uint32_t rounded = round_magnitude<2, 16, float_bits(57344.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign_of_nonzero<8>(x, rounded));
}

// One code in the low nibble.
ASSAY_INLINE std::uint8_t encode_e2m1(float x) {
  const std::uint32_t rounded = round_magnitude<1, 1, float_bits(6.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign<4>(x, rounded, 0x7));
}

// One code in the low six bits.
ASSAY_INLINE std::uint8_t encode_e3m2(float x) {
  const std::uint32_t rounded = round_magnitude<2, 3, float_bits(28.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign<6>(x, rounded, 0x1F));
}

ASSAY_INLINE std::uint8_t encode_e2m3(float x) {
  const std::uint32_t rounded = round_magnitude<3, 1, float_bits(7.5f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint8_t>(with_sign<6>(x, rounded, 0x1F));
}

// Magnitudes from 2^16 - 2^4 upward reach 2^16, whose code is that of infinity.
ASSAY_INLINE std::uint16_t encode_f16(float x) {
  const std::uint32_t rounded = round_magnitude<10, 15, float_bits(65536.0f)>(float_bits(x) & kMagnitude);
  return static_cast<std::uint16_t>(with_sign<16>(x, rounded, 0x7FFF));
}

// The exponent is f32's own, so half a unit (less one bit when the kept part is even) is added where it is.
ASSAY_INLINE std::uint16_t encode_bf16(float x) {
  const std::uint32_t bits = float_bits(x);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(x != x ? 0x7FFFu : rounded);
}

// Rounds up; the sign is ignored.
ASSAY_INLINE std::uint8_t encode_e8m0(float x) {
  const std::uint32_t magnitude = float_bits(x) & kMagnitude;
  const std::uint32_t up = std::min((magnitude + 0x007f'ffff) >> 23, 0xFEu);  // any mantissa bit carries
  const std::uint32_t code = magnitude <= 0x0040'0000 ? 0u : up;              // up to 2^-127, which is code 0
  return static_cast<std::uint8_t>(x != x ? 0xFFu : code);
}

// Float bits of a finite magnitude code: a normal one is rebiased. A subnormal one, m * 2^(1-bias-mantissa), is taken as
// the normal number above it, 2^(1-bias) + m * 2^(1-bias-mantissa), less 2^(1-bias); normal ones lose nothing.
template <int kMantissa, int kBias>
ASSAY_INLINE std::uint32_t magnitude_bits(std::uint32_t code) {
  constexpr std::uint32_t kMinNormal = static_cast<std::uint32_t>(128 - kBias) << 23;  // 2^(1-bias)
  const bool subnormal = code < (1u << kMantissa);
  const std::uint32_t raised = (code << (23 - kMantissa)) + kMinNormal - (subnormal ? 0u : 1u << 23);
  const float excess = std::bit_cast<float>(subnormal ? kMinNormal : 0u);
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(raised) - excess);
}

ASSAY_INLINE float decode_e4m3(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7Fu, sign = (code & 0x80u) << 24;
  return std::bit_cast<float>(sign | (magnitude == 0x7F ? kQuietNan : magnitude_bits<3, 7>(magnitude)));
}

ASSAY_INLINE float decode_e5m2(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7Fu, sign = (code & 0x80u) << 24;
  const std::uint32_t special = magnitude > 0x7C ? kQuietNan : kInfinity;
  return std::bit_cast<float>(sign | (magnitude >= 0x7C ? special : magnitude_bits<2, 15>(magnitude)));
}

ASSAY_INLINE float decode_e4m3_fnuz(std::uint8_t code) {
  const std::uint32_t bits = ((code & 0x80u) << 24) | magnitude_bits<3, 8>(code & 0x7Fu);
  return std::bit_cast<float>(code == 0x80 ? kQuietNan : bits);
}

ASSAY_INLINE float decode_e5m2_fnuz(std::uint8_t code) {
  const std::uint32_t bits = ((code & 0x80u) << 24) | magnitude_bits<2, 16>(code & 0x7Fu);
  return std::bit_cast<float>(code == 0x80 ? kQuietNan : bits);
}

// Bits above the low nibble are ignored.
ASSAY_INLINE float decode_e2m1(std::uint8_t code) {
  return std::bit_cast<float>(((code & 0x8u) << 28) | magnitude_bits<1, 1>(code & 0x7u));
}

// Bits above the low six are ignored.
ASSAY_INLINE float decode_e3m2(std::uint8_t code) {
  return std::bit_cast<float>(((code & 0x20u) << 26) | magnitude_bits<2, 3>(code & 0x1Fu));
}

ASSAY_INLINE float decode_e2m3(std::uint8_t code) {
  return std::bit_cast<float>(((code & 0x20u) << 26) | magnitude_bits<3, 1>(code & 0x1Fu));
}

ASSAY_INLINE float decode_e8m0(std::uint8_t code) {
  const std::uint32_t finite = code == 0 ? 0x0040'0000u : static_cast<std::uint32_t>(code) << 23;
  return std::bit_cast<float>(code == 0xFF ? kQuietNan : finite);
}

// 2^(127-code), what data are multiplied by before they are quantized; 0xFF gives NaN 0x7FFFFFFF.
ASSAY_INLINE float e8m0_quantize_multiplier(std::uint8_t code) {
  const std::uint32_t finite = code == 0xFE ? 0x0040'0000u : (0xFEu - code) << 23;
  return std::bit_cast<float>(code == 0xFF ? 0x7fff'ffffu : finite);
}

// 2^(code-127), what quantized data are multiplied by; 0xFF gives NaN 0x7FFFFFFF.
ASSAY_INLINE float e8m0_dequantize_multiplier(std::uint8_t code) {
  const std::uint32_t finite = code == 0 ? 0x0040'0000u : static_cast<std::uint32_t>(code) << 23;
  return std::bit_cast<float>(code == 0xFF ? 0x7fff'ffffu : finite);
}

// Storage to f32, exact; a NaN keeps its sign and payload, and a signalling one stays signalling.
ASSAY_INLINE float widen_bf16(std::uint16_t code) { return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16); }

ASSAY_INLINE float widen_f16(std::uint16_t code) {
  const std::uint32_t magnitude = code & 0x7FFFu, sign = (code & 0x8000u) << 16;
  const std::uint32_t special = kInfinity | (magnitude << 13);
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00 ? special : magnitude_bits<10, 15>(magnitude)));
}

// As widen_*, but every NaN becomes the quiet NaN 0x7FC00000 with the code's sign.
ASSAY_INLINE float decode_bf16(std::uint16_t code) {
  const std::uint32_t bits = static_cast<std::uint32_t>(code) << 16;
  return std::bit_cast<float>((bits & kMagnitude) > kInfinity ? (bits & ~kMagnitude) | kQuietNan : bits);
}

ASSAY_INLINE float decode_f16(std::uint16_t code) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(widen_f16(code));
  return std::bit_cast<float>((bits & kMagnitude) > kInfinity ? (bits & ~kMagnitude) | kQuietNan : bits);
}

}  // namespace assay::fast
