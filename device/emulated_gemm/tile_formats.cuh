#pragma once
// One element of the kernels of compute_tile.cuh, from its code: the prescaled f32 value, the power of B that represents
// its exponent, and whether f32 steps can handle it.
//
// Elements are prescaled so that q and s stay normal: rows by 2^-37, columns by 2^-38. That holds for all finite FP8
// and f16 values and for bf16 within 2^-30 to 2^20, e8m0 scales within 2^-30 to 2^8.

#include <cstdint>

#include "device/emulated_gemm/output.cuh"
#include "device/emulated_gemm/problem.h"

namespace assay::device::emulated {

constexpr int kUnit = 8;  // elements that a thread loads together
constexpr int kPrescaleRows = -37, kPrescaleColumns = -38;
constexpr int kPrescale = -(kPrescaleRows + kPrescaleColumns);  // 75

ASSAY_HD constexpr float power_of_two(int exponent) {
  float value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

// A format whose magnitude, moved to the top of an f32, is the value times 2^(bias - 127), subnormals included.
template <Format kFormat>
struct FastFormat;
template <>
struct FastFormat<Format::e4m3> {
  using Code = std::uint8_t;
  static constexpr int kExponentBits = 4, kFraction = 3, kBias = 7;
  static constexpr std::uint32_t kToInfinity = 0x01010101;  // added to 4 magnitudes: bit 7 of those that are special
};
template <>
struct FastFormat<Format::e5m2> {
  using Code = std::uint8_t;
  static constexpr int kExponentBits = 5, kFraction = 2, kBias = 15;
  static constexpr std::uint32_t kToInfinity = 0x04040404;
};
template <>
struct FastFormat<Format::f16> {
  using Code = std::uint16_t;
  static constexpr int kExponentBits = 5, kFraction = 10, kBias = 15;
  static constexpr std::uint32_t kToInfinity = 0x04000400;
};
template <>
struct FastFormat<Format::bf16> {
  using Code = std::uint16_t;
  static constexpr int kExponentBits = 8, kFraction = 7, kBias = 127;
  static constexpr int kLowest = -30, kHighest = 20;
};

// The codes of a unit, as loaded.
template <class Code>
struct Codes {
  static constexpr int kWords = kUnit * static_cast<int>(sizeof(Code)) / 4;
  std::uint32_t word[kWords];
  __device__ std::uint32_t code(int e) const {
    constexpr int kEach = 4 / static_cast<int>(sizeof(Code)), kBits = 8 * static_cast<int>(sizeof(Code));
    return word[e / kEach] >> (e % kEach * kBits) & ((1u << kBits) - 1);
  }
};

// Whether the f32 path cannot handle a code.
template <Format kFormat>
__device__ bool any_special(const Codes<typename FastFormat<kFormat>::Code>& codes) {
  using F = FastFormat<kFormat>;
  std::uint32_t found = 0;
  if constexpr (kFormat == Format::bf16) {
#pragma unroll
    for (int e = 0; e < kUnit; ++e) {
      const std::uint32_t magnitude = codes.code(e) & 0x7FFF, field = magnitude >> 7;
      constexpr auto kLowest = static_cast<std::uint32_t>(127 + F::kLowest);
      constexpr auto kSpan = static_cast<std::uint32_t>(F::kHighest - F::kLowest);
      found |= magnitude != 0 && field - kLowest > kSpan;
    }
  } else {
    constexpr std::uint32_t kSigns = sizeof(typename F::Code) == 1 ? 0x80808080u : 0x80008000u;
#pragma unroll
    for (const std::uint32_t word : codes.word) found |= ((word & ~kSigns) + F::kToInfinity) & kSigns;
  }
  return found != 0;
}

template <Format kFormat>
__device__ float prescaled_value(std::uint32_t code, float to_place) {
  using F = FastFormat<kFormat>;
  constexpr int kSignBit = F::kExponentBits + F::kFraction;
  const std::uint32_t magnitude = code & ((1u << kSignBit) - 1);
  return __fmul_rn(float_of((code >> kSignBit) << 31 | magnitude << (23 - F::kFraction)), to_place);
}

// The factor that makes a decoded magnitude the value times 2^prescale.
template <Format kFormat>
ASSAY_HD constexpr float to_place(bool row_side) {
  return power_of_two(127 - FastFormat<kFormat>::kBias + (row_side ? kPrescaleRows : kPrescaleColumns));
}

// Exponent of an element that is not zero; subnormals have that of the smallest normal.
template <Format kFormat>
__device__ int exponent_of(std::uint32_t code) {
  using F = FastFormat<kFormat>;
  const int field = static_cast<int>(code >> F::kFraction & ((1u << F::kExponentBits) - 1));
  return max(field, 1) - F::kBias;
}

// B^(e - top) as bf16, B = 2^kBase; 0 for a zero, and for bf16 elements that are more than 31 below the top.
template <Format kFormat, int kBase>
__device__ std::uint32_t power_of(std::uint32_t code, int top) {
  constexpr int kSignBit = FastFormat<kFormat>::kExponentBits + FastFormat<kFormat>::kFraction;
  const int field = 127 + kBase * (exponent_of<kFormat>(code) - top);
  const bool zero = (code & ((1u << kSignBit) - 1)) == 0 || (kFormat == Format::bf16 && field <= 0);
  return zero ? 0u : static_cast<std::uint32_t>(field) << 7;
}

}  // namespace assay::device::emulated
