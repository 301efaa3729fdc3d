#pragma once
// The functions of the language of scale rules (spec scale-rules-2.2), one value at a time, on the device and on the host with
// the same bits. The approximate instructions are the device's own, on the host the reference's tables.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "reference/rules/formula.h"

#ifdef __CUDACC__
#define ASSAY_BOTH_CALLED __host__ __device__ __noinline__
#else
#define ASSAY_BOTH_CALLED inline
#endif
#ifdef __CUDA_ARCH__
#define ASSAY_UNROLL _Pragma("unroll")
#else
#define ASSAY_UNROLL
#endif

namespace assay::device::by_rule {

ASSAY_BOTH bool is_nan(float a) { return is_nan_bits(bits_of_float(a)); }

// Of equal values the first: max(-0, +0) is -0.
ASSAY_BOTH float larger(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : a < b ? b : a; }
ASSAY_BOTH float smaller(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : b < a ? b : a; }
ASSAY_BOTH float larger_or_nan(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : a < b ? b : a; }
ASSAY_BOTH float smaller_or_nan(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : b < a ? b : a; }

// floor(log2 n), n from 1 to 2^24.
ASSAY_BOTH int whole_log2(int n) { return static_cast<int>(bits_of_float(static_cast<float>(n)) >> 23) - 127; }

// How far below 1, in units of 2^-24, a factor may lie so that the log2 of 2^k times it still rounds to k in f32: floor(2^e ln
// 2), where f32 has the distance 2^(e - 23) next to k. e is floor(log2 n); n = 0, where the distance is too small, gives 0.
// These are the leading binary digits of 128 ln 2 = 88.7.
ASSAY_BOTH int log2_reach(int n) { return n == 0 ? 0 : 88 >> (7 - whole_log2(n)); }

// 2^n, n from -149 on; infinity from 128 on.
ASSAY_BOTH float power_of_two(int n) {
  if (n >= 128) return float_of_bits(kF32Infinity);
  return float_of_bits(n >= -126 ? static_cast<std::uint32_t>(n + 127) << 23 : 1u << (n + 149));
}

// 2^n with n = RN(log2 a) made whole, up or down. With a = 2^k m, 1 <= m < 2, the log2 lies in [k, k + 1), and rounding it to
// f32 can only reach the two ends; it does within half a distance of f32 values there, which log2_reach() gives in units of a.
// A log2 is nowhere so near the middle of two f32 values that a log2 in f64 would round to the other one (the tests compare all
// a).
ASSAY_BOTH float power_of_log2(float a, bool up) {
  const std::uint32_t bits = bits_of_float(a), magnitude = bits & kF32Magnitude;
  if (magnitude == 0) return 0.0f;
  if (magnitude > kF32Infinity || bits != magnitude) return float_of_bits(kF32StoredNan);
  if (magnitude == kF32Infinity) return a;
  int k = static_cast<int>(magnitude >> 23) - 127, mantissa = static_cast<int>(magnitude & 0x007F'FFFFu) | 0x0080'0000;
  if (k == -127) {  // subnormal: the highest bit that is set is the leading one
    const int fraction = static_cast<int>(magnitude), places = 23 - whole_log2(fraction);
    k = -126 - places;
    mantissa = fraction << places;
  }
  if (up) {  // f32 values next to k, away from zero for k >= 0 and towards it below
    const int above = log2_reach(k >= 0 ? k : -k - 1) / 2;
    return power_of_two(mantissa - 0x0080'0000 <= above ? k : k + 1);
  }
  const int below = log2_reach(k + 1 > 0 ? k : -(k + 1));
  return power_of_two(0x0100'0000 - mantissa <= below ? k + 1 : k);
}

// a with `kept` mantissa bits, halves away from zero; a itself where that is not 0 to 22.
ASSAY_BOTH float round_mantissa(float a, float kept) {
  const std::uint32_t bits = bits_of_float(a), magnitude = bits & kF32Magnitude;
  if (magnitude >= kF32Infinity || !(kept >= 0 && kept <= 22)) return a;
  const std::uint32_t half = 0x0040'0000u >> static_cast<int>(kept);
  return float_of_bits((bits + half) & ~(2 * half - 1));
}

ASSAY_BOTH float flush(float a) {
  const std::uint32_t bits = bits_of_float(a);
  return (bits & kF32Infinity) == 0 ? float_of_bits(bits & ~kF32Magnitude) : a;
}

#ifdef __CUDA_ARCH__
// expf() as CUDA 13.0 has it (spec approximations-1.2), whatever version compiles this.
__device__ inline float device_expf(float a) {
  const float share = __saturatef(__fmaf_rn(a, 0x1.77313ap-8f, 0.5f));
  const float shifted = __fmaf_rd(share, 252.0f, 12582913.0f);  // its low bits: the exponent of the power of two
  const float whole = __fadd_rn(shifted, -12583039.0f);
  const float rest = __fmaf_rn(a, 0x1.4ae0cp-26f, __fmaf_rn(a, 0x1.715476p0f, -whole));
  float result = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(rest));
  return __fmul_rn(result, __uint_as_float(__float_as_uint(shifted) << 23));
}
#endif

// The approximate instructions and what is built from them.
ASSAY_BOTH float approximate(FormulaFunction function, float a, float b) {
#ifdef __CUDA_ARCH__
  float result = 0;
  switch (function) {
    case FormulaFunction::rcp_approx_ftz: asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::rcp_approx: asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::ex2_approx_ftz: asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::ex2_approx: asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::rsqrt_approx_ftz: asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::rsqrt_approx: asm("rsqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::tanh_approx: asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(a)); break;
    case FormulaFunction::div_full: asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); break;
    case FormulaFunction::div_approx_ftz: asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b)); break;
    default: return device_expf(a);
  }
  return result;
#else
  return scalar::call(function, a, b, 0);
#endif
}

// Any function of the language; one call on the device, as its code is large and few formulas have it for elements.
ASSAY_BOTH_CALLED float call_function(FormulaFunction function, float a, float b, float c) {
  switch (function) {
    case FormulaFunction::maximum: return larger(a, b);
    case FormulaFunction::minimum: return smaller(a, b);
    case FormulaFunction::maximum_or_nan: return larger_or_nan(a, b);
    case FormulaFunction::minimum_or_nan: return smaller_or_nan(a, b);
    case FormulaFunction::absolute: return float_of_bits(bits_of_float(a) & kF32Magnitude);
    case FormulaFunction::fused: return fused(a, b, c);
    case FormulaFunction::power_up: return e8m0_dequantize_multiplier(encode_e8m0(a));
    case FormulaFunction::power_down: return is_nan(a) ? a : float_of_bits(bits_of_float(a) & 0xFF80'0000u);
    case FormulaFunction::power_up_log2: return power_of_log2(a, true);
    case FormulaFunction::power_down_log2: return power_of_log2(a, false);
    case FormulaFunction::round_half_up: return round_mantissa(a, b);
    case FormulaFunction::to_bf16: return widen_bf16(encode_bf16(a));
    case FormulaFunction::to_f16: return widen_f16(encode_f16(a));
    case FormulaFunction::to_e4m3: return decode_fp8<Format::e4m3>(encode_fp8<Format::e4m3>(a));
    case FormulaFunction::to_e5m2: return decode_fp8<Format::e5m2>(encode_fp8<Format::e5m2>(a));
    case FormulaFunction::flush: return flush(a);
    default: return approximate(function, a, b);
  }
}

}  // namespace assay::device::by_rule
