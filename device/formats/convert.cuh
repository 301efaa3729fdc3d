#pragma once
// Number formats on the device, one element or one register at a time. Every function is also a host function with the same
// bits (plain integer code), so that a compiler for the host alone can check it against all inputs.
//
//   in     Element<bf16 | f16 | f32>: widen exactly, running max |x| with NaN passed over
//   out    encode_fp8, encode_fp8x4 (e4m3, e5m2), encode_e8m0, encode_e2m1, encode_bf16, encode_f16
//   back   decode_fp8, decode_e2m1, the factors 2^(127-E) and 2^(E-127)
//   scale  scale_from_amax, shared by the per-tensor and the block recipes
//
// FP8 and FP4 round f32 to nearest even in one step, saturate, and give 0x7F (0x7) for any NaN; zero keeps its sign.

#include <cstdint>

#include "reference/types/format.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define ASSAY_BOTH __host__ __device__ __forceinline__
#else
#define ASSAY_BOTH inline __attribute__((always_inline))
#endif

namespace assay::device {

ASSAY_BOTH std::uint32_t bits_of_float(float x) { return __builtin_bit_cast(std::uint32_t, x); }
ASSAY_BOTH float float_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr std::uint32_t kF32Infinity = 0x7F80'0000u;
inline constexpr std::uint32_t kF32Magnitude = 0x7FFF'FFFFu;
inline constexpr std::uint32_t kF32One = 0x3F80'0000u;
inline constexpr std::uint32_t kF32StoredNan = 0x7FFF'FFFFu;  // what is stored for a NaN of arithmetic

ASSAY_BOTH bool is_nan_bits(std::uint32_t bits) { return (bits & kF32Magnitude) > kF32Infinity; }

// A NaN of arithmetic has a sign and a payload that depend on the machine; a stored NaN does not.
ASSAY_BOTH float stored_float(float x) { return is_nan_bits(bits_of_float(x)) ? float_of_bits(kF32StoredNan) : x; }

// Arithmetic that is never contracted or flushed, under any compiler flags.
ASSAY_BOTH float add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
ASSAY_BOTH float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
ASSAY_BOTH float divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
ASSAY_BOTH float reciprocal(float a) {
#ifdef __CUDA_ARCH__
  return __frcp_rn(a);
#else
  return 1.0f / a;
#endif
}

// a * b + c, rounded once.
ASSAY_BOTH float fused(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

// x * scale, where `zero` chooses the sign of exact zeros: -0 keeps it (the plain product), +0 makes it positive.
// fma(x, scale, -0) is the plain product in every bit: -0 is neutral in addition. spec formats-1.8.
ASSAY_BOTH float multiply_with_zero(float x, float scale, float zero) { return fused(x, scale, zero); }
ASSAY_BOTH float zero_addend(bool zero_sign_kept) { return float_of_bits(zero_sign_kept ? 0x8000'0000u : 0u); }

// ---------------------------------------------------------------------------------------------------------------------
// Rounding to a small format, spec formats-1.2, formats-1.3, without an instruction for it.

// Code of the magnitude `bits` (not NaN) in a format of MB mantissa bits; `max_bits` is its largest value as f32.
// With a = min(|x|, max) and e = max(floor(log2 a), 1 - bias), adding M = 2^(23 - MB + e) to a leaves the quotient
// q = RNE(a / 2^(e - MB)) in the last bits of the sum: the ulp of M is 2^(e - MB), and a < M. Then
// code = (e - emin) * 2^MB + q, and a q of 2^(MB+1) carries into the exponent by itself.
template <int MB, int bias>
ASSAY_BOTH std::uint32_t round_magnitude(std::uint32_t bits, std::uint32_t max_bits) {
  constexpr std::uint32_t kLowest = static_cast<std::uint32_t>(127 + 1 - bias) << 23;
  const std::uint32_t a = bits < max_bits ? bits : max_bits;
  const std::uint32_t binade = (a & kF32Infinity) > kLowest ? a & kF32Infinity : kLowest;
  const std::uint32_t magic = binade + (static_cast<std::uint32_t>(23 - MB) << 23);
  const std::uint32_t q = bits_of_float(add(float_of_bits(a), float_of_bits(magic))) - magic;
  return ((binade - kLowest) >> (23 - MB)) + q;
}

template <Format format>
struct Fp8;
template <>
struct Fp8<Format::e4m3> {
  static constexpr int kMantissaBits = 3, kBias = 7;
  static constexpr std::uint32_t kMaxBits = 0x43E0'0000u;  // 448
  static constexpr float kMax = 448;
};
template <>
struct Fp8<Format::e5m2> {
  static constexpr int kMantissaBits = 2, kBias = 15;
  static constexpr std::uint32_t kMaxBits = 0x4760'0000u;  // 57344
  static constexpr float kMax = 57344;
};

template <Format format>
ASSAY_BOTH std::uint32_t encode_fp8_without_instruction(float x) {
  using F = Fp8<format>;
  const std::uint32_t bits = bits_of_float(x), magnitude = bits & kF32Magnitude;
  const std::uint32_t code = round_magnitude<F::kMantissaBits, F::kBias>(magnitude, F::kMaxBits) | (bits >> 24 & 0x80);
  return magnitude > kF32Infinity ? 0x7Fu : code;
}

// Two codes, that of `low` in the low byte.
template <Format format>
ASSAY_BOTH std::uint32_t encode_fp8x2(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint16_t codes;
  if constexpr (format == Format::e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  }
  return codes;
#else
  return encode_fp8_without_instruction<format>(low) | encode_fp8_without_instruction<format>(high) << 8;
#endif
}

// Four codes, that of `a` in the lowest byte.
template <Format format>
ASSAY_BOTH std::uint32_t encode_fp8x4(float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint32_t codes;
  if constexpr (format == Format::e4m3) {
    asm("{.reg .b16 lo, hi;\n cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1;\n cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3;\n"
        " mov.b32 %0, {lo, hi};}"
        : "=r"(codes)
        : "f"(a), "f"(b), "f"(c), "f"(d));
  } else {
    asm("{.reg .b16 lo, hi;\n cvt.rn.satfinite.e5m2x2.f32 lo, %2, %1;\n cvt.rn.satfinite.e5m2x2.f32 hi, %4, %3;\n"
        " mov.b32 %0, {lo, hi};}"
        : "=r"(codes)
        : "f"(a), "f"(b), "f"(c), "f"(d));
  }
  return codes;
#else
  return encode_fp8x2<format>(a, b) | encode_fp8x2<format>(c, d) << 16;
#endif
}

template <Format format>
ASSAY_BOTH std::uint8_t encode_fp8(float x) {
  return static_cast<std::uint8_t>(encode_fp8x2<format>(x, 0.0f));
}

// The exact value; NaN codes give the quiet NaN with their sign, e5m2 infinities are infinities. The code is read as an f32
// whose exponent is too small by the difference of the biases, subnormals included; a power of two corrects that.
template <Format format>
ASSAY_BOTH float decode_fp8(std::uint32_t code) {
  const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7Fu;
  if constexpr (format == Format::e4m3) {
    const std::uint32_t finite = bits_of_float(multiply(float_of_bits(magnitude << 20), 0x1p120f));
    return float_of_bits(sign | (magnitude == 0x7F ? 0x7FC0'0000u : finite));
  } else {
    const std::uint32_t finite = bits_of_float(multiply(float_of_bits(magnitude << 21), 0x1p112f));
    const std::uint32_t special = magnitude > 0x7C ? 0x7FC0'0000u : kF32Infinity;
    return float_of_bits(sign | (magnitude >= 0x7C ? special : finite));
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// E2M1 and E8M0

// The 4-bit code of x.
ASSAY_BOTH std::uint32_t encode_e2m1(float x) {
  const std::uint32_t bits = bits_of_float(x), magnitude = bits & kF32Magnitude;
  const std::uint32_t code = round_magnitude<1, 1>(magnitude, 0x40C0'0000u /* 6 */) | (bits >> 28 & 0x8);
  return magnitude > kF32Infinity ? 0x7u : code;
}

// Bits above the low nibble are ignored.
ASSAY_BOTH float decode_e2m1(std::uint32_t code) {
  const float magnitude = multiply(float_of_bits((code & 0x7u) << 22), 0x1p126f);
  return float_of_bits(bits_of_float(magnitude) | (code & 0x8u) << 28);
}

// Smallest E8M0 that is at least |x|, at most 2^127; NaN gives 0xFF. spec formats-1.6.
ASSAY_BOTH std::uint32_t encode_e8m0(float x) {
  const std::uint32_t magnitude = bits_of_float(x) & kF32Magnitude;
  if (magnitude > kF32Infinity) return 0xFFu;
  // A fraction raises the exponent field. An f32 subnormal (field 0) stands for at most 2^-127 up to the fraction 0x400000,
  // so there only what lies above that raises it.
  const std::uint32_t raised = (magnitude + (magnitude < 0x0080'0000u ? 0x003F'FFFFu : 0x007F'FFFFu)) >> 23;
  return raised < 0xFEu ? raised : 0xFEu;
}

// 2^(127-E), the factor that data are multiplied by when quantized; 0xFF gives the NaN 0x7FFFFFFF. spec formats-1.7.
ASSAY_BOTH float e8m0_quantize_multiplier(std::uint32_t code) {
  const std::uint32_t normal = (254u - code) << 23;
  return float_of_bits(code == 0xFFu ? 0x7FFF'FFFFu : code == 0xFEu ? 0x0040'0000u : normal);
}

// 2^(E-127), the factor back; 0xFF gives the NaN 0x7FFFFFFF.
ASSAY_BOTH float e8m0_dequantize_multiplier(std::uint32_t code) {
  return float_of_bits(code == 0xFFu ? 0x7FFF'FFFFu : code == 0u ? 0x0040'0000u : code << 23);
}

// ---------------------------------------------------------------------------------------------------------------------
// bf16 and f16

ASSAY_BOTH float widen_bf16(std::uint32_t code) { return float_of_bits(code << 16); }

// Exact, subnormals included. (A NaN is made quiet by some machines and not by others.)
ASSAY_BOTH float widen_f16(std::uint32_t code) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(static_cast<unsigned short>(code)));
#else
  const std::uint32_t magnitude = (code & 0x7FFFu) << 13;
  const std::uint32_t finite = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | kF32Infinity;
  return float_of_bits((code & 0x8000u) << 16 | (magnitude >= 0x0F80'0000u ? special : finite));
#endif
}

// To nearest even; infinity from half a unit past the largest finite value; every NaN gives 0x7FFF.
ASSAY_BOTH std::uint16_t encode_bf16(float x) {
  const std::uint32_t bits = bits_of_float(x);
  if (is_nan_bits(bits)) return 0x7FFF;
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
ASSAY_BOTH std::uint16_t encode_f16(float x) {
  const std::uint32_t bits = bits_of_float(x), magnitude = bits & kF32Magnitude, sign = bits >> 16 & 0x8000u;
  if (magnitude > kF32Infinity) return 0x7FFF;
  if (magnitude >= 0x477F'F000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 65520 and more
  return static_cast<std::uint16_t>(sign | round_magnitude<10, 15>(magnitude, 0x477F'F000u));
}

// ---------------------------------------------------------------------------------------------------------------------
// The types of x, by the 32-bit word: one f32 or two of 16 bits, the first in the low half.
//
//   kBytes         of an element
//   kPerWord       elements of a word
//   kMaxBits       the largest finite value, as f32
//   widen(word, i) element i of a word as f32, exact; i is a compile-time constant after unrolling
//   accumulate_absmax(m, word)  the maximum of m and the magnitudes of a word, NaN passed over; as many maxima as elements in
//                  a word; starts from 0
//   merge(a, b)    of two such
//   amax_bits(m)   the largest of them as the bits of an f32, which order as unsigned integers do
//
// accumulate_absmax() is a maximum: it selects and never rounds, so its order cannot matter. The instruction's maximum
// returns the other operand for a NaN.
template <Format type>
struct Element;

template <>
struct Element<Format::f32> {
  static constexpr int kBytes = 4, kPerWord = 1;
  static constexpr std::uint32_t kMaxBits = 0x7F7F'FFFFu;
  static ASSAY_BOTH float widen_one(std::uint32_t bits) { return float_of_bits(bits); }
  static ASSAY_BOTH float widen(std::uint32_t word, int) { return float_of_bits(word); }
  static ASSAY_BOTH std::uint32_t accumulate_absmax(std::uint32_t m, std::uint32_t word) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(fmaxf(__uint_as_float(m), fabsf(__uint_as_float(word))));
#else
    const std::uint32_t magnitude = word & kF32Magnitude;
    return magnitude <= kF32Infinity && magnitude > m ? magnitude : m;
#endif
  }
  static ASSAY_BOTH std::uint32_t merge(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }
  static ASSAY_BOTH std::uint32_t amax_bits(std::uint32_t m) { return m; }
};

// The parts that bf16 and f16 share: kInfinity is the code of infinity.
template <std::uint32_t kInfinity>
struct HalfWord {
  static constexpr int kBytes = 2, kPerWord = 2;
  static ASSAY_BOTH std::uint32_t accumulate_absmax_on_host(std::uint32_t m, std::uint32_t word) {
    std::uint32_t low = m & 0xFFFFu, high = m >> 16;
    const std::uint32_t a = word & 0x7FFFu, b = word >> 16 & 0x7FFFu;
    if (a <= kInfinity && a > low) low = a;
    if (b <= kInfinity && b > high) high = b;
    return low | high << 16;
  }
  static ASSAY_BOTH std::uint32_t larger_half(std::uint32_t m) { return (m & 0xFFFFu) > (m >> 16) ? m & 0xFFFFu : m >> 16; }
};

template <>
struct Element<Format::bf16> : HalfWord<0x7F80> {
  static constexpr std::uint32_t kMaxBits = 0x7F7F'0000u;
  static ASSAY_BOTH float widen_one(std::uint32_t code) { return widen_bf16(code); }
  static ASSAY_BOTH float widen(std::uint32_t word, int i) { return float_of_bits(i == 0 ? word << 16 : word & 0xFFFF'0000u); }
  static ASSAY_BOTH std::uint32_t accumulate_absmax(std::uint32_t m, std::uint32_t word) {
#ifdef __CUDA_ARCH__
    return merge(m, word & 0x7FFF'7FFFu);
#else
    return accumulate_absmax_on_host(m, word);
#endif
  }
  static ASSAY_BOTH std::uint32_t merge(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
    std::uint32_t larger;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    return accumulate_absmax_on_host(a, b);
#endif
  }
  static ASSAY_BOTH std::uint32_t amax_bits(std::uint32_t m) { return larger_half(m) << 16; }
};

template <>
struct Element<Format::f16> : HalfWord<0x7C00> {
  static constexpr std::uint32_t kMaxBits = 0x477F'E000u;
  static ASSAY_BOTH float widen_one(std::uint32_t code) { return widen_f16(code); }
  static ASSAY_BOTH float widen(std::uint32_t word, int i) { return widen_f16(i == 0 ? word & 0xFFFFu : word >> 16); }
  static ASSAY_BOTH std::uint32_t accumulate_absmax(std::uint32_t m, std::uint32_t word) {
#ifdef __CUDA_ARCH__
    return merge(m, word & 0x7FFF'7FFFu);
#else
    return accumulate_absmax_on_host(m, word);
#endif
  }
  static ASSAY_BOTH std::uint32_t merge(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
    std::uint32_t larger;
    asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    return accumulate_absmax_on_host(a, b);
#endif
  }
  static ASSAY_BOTH std::uint32_t amax_bits(std::uint32_t m) { return bits_of_float(widen_f16(larger_half(m))); }
};

// ---------------------------------------------------------------------------------------------------------------------

// spec per-tensor-1.1. `amax_bits`: magnitude bits, never NaN; `max`: 448 or 57344; `overflow_bits`: the scale where the quotient
// overflows (per-tensor: FLT_MAX, block: the largest finite value of the type of x).
ASSAY_BOTH float scale_from_amax(std::uint32_t amax_bits, float max, bool pow2, float epsilon, std::uint32_t overflow_bits) {
  const float amax = float_of_bits(amax_bits);
  const std::uint32_t floored = amax < epsilon ? bits_of_float(epsilon) : amax_bits;
  if (floored == 0 || floored >= kF32Infinity) return 1.0f;
  std::uint32_t scale = bits_of_float(divide(max, float_of_bits(floored)));
  if (scale == kF32Infinity) scale = overflow_bits;
  if (pow2) scale &= 0xFF80'0000u;
  return float_of_bits(scale);
}

}  // namespace assay::device
