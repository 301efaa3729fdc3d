#pragma once
// Layer (b): the types that x can have, in the form that the compiler can vectorise: no branch, and no select that it
// may turn into one.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"
#include "reference/types/format.h"

namespace assay::fast {

// Rank: an integer that sorts as |x| does, with every NaN below zero's. It is the magnitude's bits, offset so that
// infinity becomes the largest signed integer: NaN, being above infinity, wraps round to the negative ones.
template <class Signed, class Unsigned, Unsigned kInfinityBits>
struct Ranking {
  using Rank = Signed;
  static constexpr Unsigned kMagnitudeBits = static_cast<Unsigned>(~Unsigned{0}) >> 1;
  static constexpr Unsigned kOffset = kMagnitudeBits - kInfinityBits;
  static constexpr Rank kZero = static_cast<Rank>(kOffset);  // the rank of 0, where a maximum starts
  static ASSAY_INLINE Rank rank(Unsigned bits) {
    return static_cast<Rank>(static_cast<Unsigned>((bits & kMagnitudeBits) + kOffset));
  }
  // Of a rank of at least kZero.
  static ASSAY_INLINE Unsigned magnitude(Rank rank) { return static_cast<Unsigned>(static_cast<Unsigned>(rank) - kOffset); }
};

struct Bf16 : Ranking<std::int16_t, std::uint16_t, 0x7F80> {
  using Storage = std::uint16_t;
  static ASSAY_INLINE Rank rank_of(Storage code) { return rank(code); }
  static ASSAY_INLINE float amax_of(Rank rank) { return widen(magnitude(rank)); }
  static ASSAY_INLINE float widen(Storage code) { return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16); }
};

struct F16 : Ranking<std::int16_t, std::uint16_t, 0x7C00> {
  using Storage = std::uint16_t;
  static ASSAY_INLINE Rank rank_of(Storage code) { return rank(code); }
  static ASSAY_INLINE float amax_of(Rank rank) { return widen(magnitude(rank)); }
  // Read as a float whose exponent is 112 too small, subnormals included; 2^112 puts that right. Infinity and NaN come
  // out with a finite exponent, which the mask then fills.
  static ASSAY_INLINE float widen(Storage code) {
    const std::uint32_t magnitude = (code & 0x7FFFu) << 13, sign = (code & 0x8000u) << 16;
    const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const std::uint32_t special = static_cast<std::uint32_t>(-static_cast<std::int32_t>(magnitude >= 0x0F80'0000u));
    return std::bit_cast<float>(sign | finite | (special & 0x7f80'0000u));
  }
};

struct F32 : Ranking<std::int32_t, std::uint32_t, 0x7f80'0000> {
  using Storage = float;
  static ASSAY_INLINE Rank rank_of(Storage value) { return rank(std::bit_cast<std::uint32_t>(value)); }
  static ASSAY_INLINE float amax_of(Rank rank) { return std::bit_cast<float>(magnitude(rank)); }
  static ASSAY_INLINE float widen(Storage value) { return value; }
};

// body.template run<Bf16 | F16 | F32>() by the type of x.
template <class Body>
ASSAY_INLINE void with_x_type(Format type, const Body& body) {
  switch (type) {
    case Format::bf16: return body.template run<Bf16>();
    case Format::f16: return body.template run<F16>();
    default: return body.template run<F32>();
  }
}

}  // namespace assay::fast
