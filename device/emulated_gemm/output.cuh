#pragma once
// After the chain of steps (plan.h): promotion, slices, the epilogue. f32 arithmetic, each operation rounded once.

#include <cuda_fp16.h>

#include <cstdint>

#include "device/emulated_gemm/problem.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device::emulated {

__device__ inline float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
__device__ inline std::uint32_t bits_of_float(float value) { return __float_as_uint(value); }
__device__ inline bool is_nan(float value) { return !(value == value); }

__device__ inline float value_of_code(Format type, std::uint32_t code) {
  if (type == Format::f32) return float_of(code);
  if (type == Format::bf16) return float_of(code << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(code)));
}

// Nearest, ties to even; a NaN is 0x7FFFFFFF or 0x7FFF.
__device__ inline std::uint32_t code_of_value(Format type, float value) {
  if (is_nan(value)) return type == Format::f32 ? 0x7FFFFFFFu : 0x7FFFu;
  if (type == Format::f32) return bits_of_float(value);
  if (type == Format::f16) return __half_as_ushort(__float2half_rn(value));
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t kept = bits >> 16, rest = bits & 0xFFFF;
  const bool up = rest > 0x8000 || (rest == 0x8000 && (kept & 1) != 0);
  return kept + (up ? 1 : 0);
}

__device__ inline std::uint32_t load_code(Format type, const void* base, std::int64_t at) {
  return type == Format::f32 ? static_cast<const std::uint32_t*>(base)[at] : static_cast<const std::uint16_t*>(base)[at];
}
__device__ inline void store_code(Format type, void* base, std::int64_t at, std::uint32_t code) {
  if (type == Format::f32) {
    static_cast<std::uint32_t*>(base)[at] = code;
  } else {
    static_cast<std::uint16_t*>(base)[at] = static_cast<std::uint16_t>(code);
  }
}

__device__ inline std::int64_t scale_index(const GroupOperand& operand, std::int64_t i, std::int64_t k) {
  const std::int64_t row = i >> operand.i_shift, block = k >> operand.k_shift;
  return operand.tiles > 0 ? swizzled_scale_index(row, block, operand.tiles)
                           : row * operand.i_stride + block * operand.block_stride;
}
__device__ inline float scale_value(const GroupOperand& operand, std::int64_t i, std::int64_t k) {
  return static_cast<const float*>(operand.scale)[scale_index(operand, i, k)];
}
__device__ inline std::uint8_t scale_code(const GroupOperand& operand, std::int64_t i, std::int64_t k) {
  return static_cast<const std::uint8_t*>(operand.scale)[scale_index(operand, i, k)];
}

// The value t of a finished promotion interval enters the partial sum.
__device__ inline float promoted(Promotion promotion, float partial, float t, float row_scale, float column_scale) {
  switch (promotion) {
    case Promotion::none: return t;
    case Promotion::add: return __fadd_rn(partial, t);
    case Promotion::fma_scales_first: return __fmaf_rn(__fmul_rn(row_scale, column_scale), t, partial);
    case Promotion::fma_rows_first: return __fmaf_rn(__fmul_rn(t, row_scale), column_scale, partial);
    default: return __fmaf_rn(__fmul_rn(t, column_scale), row_scale, partial);
  }
}

// Adds the sum of a finished slice to the sums of earlier ones.
__device__ inline float merged(const Arithmetic& plan, Format d_type, float total, float slice, bool first) {
  if (plan.slices == 1) return slice;
  const auto kept = [&](float value) {
    return plan.merge == SliceMerge::sequential_output ? value_of_code(d_type, code_of_value(d_type, value)) : value;
  };
  const float own = kept(slice);
  return first ? own : kept(__fadd_rn(total, own));
}

__device__ inline void write_element(const Group& group, Format d_type, std::int64_t i, std::int64_t j, float acc) {
  const std::int64_t at = i * group.n + j;
  float value = group.depth > 0 ? acc : 0.0f;
  if (group.beta != 0) {
    value = __fmaf_rn(value, group.factor, __fmul_rn(group.beta, value_of_code(d_type, load_code(d_type, group.c, at))));
  } else if (group.factor != 1) {
    value = __fmaf_rn(value, group.factor, 0.0f);
  }
  std::uint32_t code = code_of_value(d_type, value);
  if (group.bias != nullptr) {
    const float bias = value_of_code(d_type, load_code(d_type, group.bias, j));
    code = code_of_value(d_type, __fadd_rn(value_of_code(d_type, code), bias));
  }
  store_code(d_type, group.d, at, code);
}

}  // namespace assay::device::emulated
