// The narrow kernel: AVX-512, 16 columns per register. For 16 products by 16 columns it issues about 64 + 8 + 17
// instructions: four per product (two multiplications, conversion, addition), exponents for 64 columns at once in bytes, and
// the end of the step.
//
// What the ranges of fused_kernel.h give (e: exponent of a product, N = -86: what e_max is taken to be without products):
//   - a product with a zero has a byte of at most -128 + 42 = -86, one without at least -84: the maximum ignores zeros
//   - every power of two below is a normal f32, and so is every result but 0
//   - where a step has no product, C comes back unchanged: C is a multiple of 2^(-84 - F), the grid is 2^(-86 - F)

#include "reference/gemm/fused_kernel.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "reference/support/simd.h"
#include "reference/types/error.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(ASSAY_PORTABLE)
#define ASSAY_NARROW_KERNEL 1
#include <immintrin.h>
// GCC 12 warns about the deliberately undefined register in its own header.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#else
#define ASSAY_NARROW_KERNEL 0
#endif

namespace assay::gemm {
namespace {

std::atomic<bool> narrow_allowed{true};

bool machine_has_instructions() {
#if ASSAY_NARROW_KERNEL
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

bool environment_allows() {
  const char* value = std::getenv("ASSAY_SIMD");
  return value == nullptr || std::strcmp(value, "portable") != 0;
}

}  // namespace

bool narrow_kernel_available() {
  static const bool available = machine_has_instructions() && environment_allows();
  return available && narrow_allowed.load(std::memory_order_relaxed);
}

void allow_narrow_kernel(bool allowed) { narrow_allowed.store(allowed, std::memory_order_relaxed); }

bool narrow_kernel_takes(const ChainRule& rule) {
  const int kept = rule.accumulator == Accumulator::e8m13_truncated ? 13 : 23;
  return !rescales(rule.promotion) && !rule.flushes && rule.accumulator != Accumulator::f16_nearest &&
         rule.scaling != StepScaling::e4m3_per_16 && rule.products <= 32 && rule.fraction_bits >= kept &&
         rule.fraction_bits <= 25;
}

#if ASSAY_NARROW_KERNEL
namespace {

#define ASSAY_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define ASSAY_AVX512_INLINE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), always_inline)) inline

constexpr int kLanes = 16;
constexpr int kNoProduct = -86;

// How the sum is converted to the accumulator.
enum class Rounding {
  f32,       // the sum fits int32
  f32_wide,  // it may need one bit more: 16 products of 16-bit formats, or 32 of FP8, with F = 25
  e8m13,     // the sum fits an f32
};

// Truncates (first + second) * unit. `first` holds half of the products and C, `second` the other half.
template <Rounding kRounding>
ASSAY_AVX512_INLINE __m512 round_sum(__m512i first, __m512i second, __m512 unit) {
  const __m512i sum = _mm512_add_epi32(first, second);
  if constexpr (kRounding == Rounding::e8m13) {
    const __m512 exact = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), unit);
    return _mm512_and_ps(exact, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xFFFF'FC00))));
  } else if constexpr (kRounding == Rounding::f32) {
    return _mm512_mul_ps(_mm512_cvt_roundepi32_ps(sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), unit);
  } else {
    // A sum of 33 bits, whose magnitude fits 32: where both addends have one sign it is theirs, otherwise nothing
    // overflows and it is that of the wrapped sum. This is the majority of the three sign bits.
    const __m512i sign = _mm512_ternarylogic_epi32(first, second, sum, 0xE8);
    const __mmask16 negative = _mm512_movepi32_mask(sign);
    const __m512i magnitude = _mm512_mask_sub_epi32(sum, negative, _mm512_setzero_si512(), sum);
    const __m512 kept = _mm512_mul_ps(_mm512_cvt_roundepu32_ps(magnitude, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), unit);
    const __m512i sign_bit = _mm512_set1_epi32(static_cast<int>(0x8000'0000));
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(kept), sign, sign_bit, 0xF8));  // kept | (sign & bit)
  }
}

// The value of a finished promotion interval enters the partial sum.
ASSAY_AVX512_INLINE __m512 promote(Promotion promotion, __m512 partial, __m512 value, float row_scale,
                                   const float* column_scale) {
  switch (promotion) {
    case Promotion::none: return value;
    case Promotion::add: return _mm512_add_ps(partial, value);
    default: break;
  }
  const __m512 rows = _mm512_set1_ps(row_scale), columns = _mm512_loadu_ps(column_scale);
  if (promotion == Promotion::fma_scales_first) return _mm512_fmadd_ps(_mm512_mul_ps(rows, columns), value, partial);
  if (promotion == Promotion::fma_rows_first) return _mm512_fmadd_ps(_mm512_mul_ps(value, rows), columns, partial);
  return _mm512_fmadd_ps(_mm512_mul_ps(value, columns), rows, partial);
}

// Adds the aligned and cut products of slots [begin, end) to `sum`, for kRows rows and 16 columns.
template <int kRows>
ASSAY_AVX512_INLINE void add_products(__m512i (&sum)[kRows], const float* a, const float* b, const __m512 (&align)[kRows],
                                      int begin, int end) {
  for (int slot = begin; slot < end; ++slot) {
    const __m512 columns = _mm512_loadu_ps(b + slot * kPanel);
    for (int r = 0; r < kRows; ++r) {
      const __m512 product = _mm512_mul_ps(columns, _mm512_set1_ps(a[slot * kRowGroup + r]));
      sum[r] = _mm512_add_epi32(sum[r], _mm512_cvttps_epi32(_mm512_mul_ps(product, align[r])));
    }
  }
}

// The largest exponent of a product, + 127, for each of kRows rows and 64 columns; block scales are not in it yet.
template <int kRows>
ASSAY_AVX512_INLINE void largest_exponents(const std::uint32_t* a_exponent, const std::int8_t* b_exponent, int products,
                                           std::uint8_t (&tops)[kRows][kPanel]) {
  __m512i top[kRows];
  for (int r = 0; r < kRows; ++r) top[r] = _mm512_set1_epi8(kNoProduct);
  for (int slot = 0; slot < products; ++slot) {
    const __m512i exponents = _mm512_loadu_si512(b_exponent + slot * kPanel);
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(static_cast<int>(a_exponent[slot * kRowGroup + r]));
      top[r] = _mm512_max_epi8(top[r], _mm512_adds_epi8(exponents, row));
    }
  }
  for (int r = 0; r < kRows; ++r) _mm512_store_si512(tops[r], _mm512_add_epi8(top[r], _mm512_set1_epi8(127)));
}

// What follows a step that ends a link or a promotion interval: finished sums move on, and new ones begin at 0.
template <int kRows>
ASSAY_AVX512_INLINE void end_sums(const KernelCall& call, std::int64_t step, int first_row) {
  const ChainRule& rule = *call.rule;
  for (int r = 0; r < kRows; ++r) {
    for (int column = 0; column < kPanel; column += kLanes) {
      const int at = (first_row + r) * kPanel + column;
      float* value_at = call.state.chain + at;
      if (rule.linked) {
        value_at = call.state.link + at;
        if (call.steps[step].ends_link) {
          _mm512_storeu_ps(value_at, _mm512_add_ps(_mm512_loadu_ps(call.state.chain + at), _mm512_loadu_ps(value_at)));
          _mm512_storeu_ps(call.state.chain + at, _mm512_setzero_ps());
        }
      }
      if (!call.steps[step].ends_interval) continue;
      const bool scaled = call.row_lines.scale != nullptr;
      const float row_scale = scaled ? call.row_lines.scale[step * kRowGroup + first_row + r] : 1.0f;
      const float* column_scale = scaled ? call.column_lines.scale + step * kPanel + column : nullptr;
      float* partial = call.state.partial + at;
      _mm512_storeu_ps(partial,
                       promote(rule.promotion, _mm512_loadu_ps(partial), _mm512_loadu_ps(value_at), row_scale, column_scale));
      _mm512_storeu_ps(value_at, _mm512_setzero_ps());
    }
  }
}

// `kRows` rows from `first_row` of the group. kScaled: mxfp8.
template <int kRows, Rounding kRounding, bool kScaled>
ASSAY_AVX512 void narrow_rows(const KernelCall& call, int first_row) {
  const ChainRule& rule = *call.rule;
  const int products = rule.products;
  const __m512i exponent_mask = _mm512_set1_epi32(0x7F80'0000);
  const __m512i align_bias = _mm512_set1_epi32((254 + rule.fraction_bits) << 23);
  const __m512i unit_bias = _mm512_set1_epi32(rule.fraction_bits << 23);
  alignas(64) std::uint8_t tops[kRows][kPanel];

  for (std::int64_t step = 0; step < call.step_count; ++step) {
    const std::int64_t row_at = step * products * kRowGroup + first_row;
    const std::uint32_t* a_exponent = call.row_lines.exponent_word + row_at;
    const float* a = call.row_lines.value + row_at;
    const std::int8_t* b_exponent = call.column_lines.exponent_byte + step * products * kPanel;
    const float* b_panel = call.column_lines.value + step * products * kPanel;

    largest_exponents<kRows>(a_exponent, b_exponent, products, tops);

    for (int column = 0; column < kPanel; column += kLanes) {
      __m512i top[kRows];   // e_max + 127, in the place of an f32's exponent
      __m512 align[kRows];  // 2^(F - e_max), times the block scales
      for (int r = 0; r < kRows; ++r) {
        const __m512i biased = _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(tops[r] + column)));
        const __m512i c = _mm512_loadu_si512(call.state.chain + (first_row + r) * kPanel + column);
        const __m512i c_exponent = _mm512_and_epi32(c, exponent_mask);
        if constexpr (kScaled) {
          // Without a product the scale has no effect, and C must come back unchanged: products of FP8 with scales are
          // multiples of 2^(-32 - 60 - F).
          constexpr int kNoScaledProduct = -95;
          const __mmask16 any = _mm512_cmpgt_epi32_mask(biased, _mm512_set1_epi32(kNoProduct + 127));
          const __m512i scale =
              _mm512_maskz_add_epi32(any, _mm512_loadu_si512(call.column_lines.scale_exponent + step * kPanel + column),
                                     _mm512_set1_epi32(call.row_lines.scale_exponent[step * kRowGroup + first_row + r]));
          const __m512i scaled = _mm512_mask_add_epi32(_mm512_set1_epi32(kNoScaledProduct + 127), any, biased, scale);
          top[r] = _mm512_max_epi32(_mm512_slli_epi32(scaled, 23), c_exponent);
          // Far below C the factor would leave the range: 0 cuts the same products to 0.
          const __m512i e_max = _mm512_srli_epi32(top[r], 23);
          const __m512i unscaled = _mm512_sub_epi32(_mm512_set1_epi32(254 + rule.fraction_bits), e_max);
          const __m512i field = _mm512_add_epi32(unscaled, scale);
          align[r] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_max_epi32(field, _mm512_setzero_si512()), 23));
        } else {
          top[r] = _mm512_max_epi32(_mm512_slli_epi32(biased, 23), c_exponent);
          align[r] = _mm512_castsi512_ps(_mm512_sub_epi32(align_bias, top[r]));
        }
      }

      __m512i first[kRows], second[kRows];
      for (int r = 0; r < kRows; ++r) first[r] = second[r] = _mm512_setzero_si512();
      add_products<kRows>(first, a, b_panel + column, align, 0, products / 2);
      add_products<kRows>(second, a, b_panel + column, align, products / 2, products);

      for (int r = 0; r < kRows; ++r) {
        float* chain = call.state.chain + (first_row + r) * kPanel + column;
        const __m512 c = _mm512_loadu_ps(chain);
        const __m512 c_align = kScaled ? _mm512_castsi512_ps(_mm512_sub_epi32(align_bias, top[r])) : align[r];
        const __m512 unit = _mm512_castsi512_ps(_mm512_sub_epi32(top[r], unit_bias));  // 2^(e_max - F)
        const __m512i with_c = _mm512_add_epi32(first[r], _mm512_cvttps_epi32(_mm512_mul_ps(c, c_align)));
        _mm512_storeu_ps(chain, round_sum<kRounding>(with_c, second[r], unit));
      }
    }

    if (!call.steps[step].ends_link && !call.steps[step].ends_interval) continue;
    end_sums<kRows>(call, step, first_row);
  }
}

template <Rounding kRounding, bool kScaled>
ASSAY_AVX512 void narrow_group(const KernelCall& call) {
  int row = 0;
  if (call.rows == kRowGroup) return narrow_rows<kRowGroup, kRounding, kScaled>(call, 0);
  if (call.rows - row >= 4) {
    narrow_rows<4, kRounding, kScaled>(call, row);
    row += 4;
  }
  if (call.rows - row >= 2) {
    narrow_rows<2, kRounding, kScaled>(call, row);
    row += 2;
  }
  if (call.rows - row >= 1) narrow_rows<1, kRounding, kScaled>(call, row);
}

}  // namespace

void run_narrow(const KernelCall& call) {
  const ChainRule& rule = *call.rule;
  const bool scaled = rule.scaling == StepScaling::e8m0_per_32;
  if (rule.accumulator == Accumulator::e8m13_truncated) return narrow_group<Rounding::e8m13, false>(call);
  if (scaled) return narrow_group<Rounding::f32_wide, true>(call);
  // Below 4 * 2^F a product: `products` of them and C stay under 2^31 up to F + 2 + log2(products) = 30.
  const bool fits = rule.products * 4 + 2 <= (std::int64_t{1} << (31 - rule.fraction_bits));
  return fits ? narrow_group<Rounding::f32, false>(call) : narrow_group<Rounding::f32_wide, false>(call);
}

#else

void run_narrow(const KernelCall&) { throw NotSupported("the narrow kernel is not part of this build"); }

#endif

}  // namespace assay::gemm
