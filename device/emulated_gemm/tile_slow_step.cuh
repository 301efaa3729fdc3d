#pragma once
// A step outside the range of the f32 path, for the kernels of compute_tile.cuh: one element in integers (step.cuh), from
// the operands in memory; and which accumulators may return to f32 steps.

#include <cstdint>

#include "device/emulated_gemm/output.cuh"
#include "device/emulated_gemm/step.cuh"

namespace assay::device::emulated {

// The operands of a block.
struct SlowLines {
  const GroupOperand* rows;
  const GroupOperand* columns;
  Format row_type, column_type;
};

// The accumulator c of element (i, j) after `count` products from k.
__device__ __noinline__ inline float slow_step(const Arithmetic& unit, const SlowLines& lines, std::int64_t i, std::int64_t j,
                                               std::int64_t k, int count, float c) {
  const auto read = [](Format type, const GroupOperand& operand, std::int64_t line, std::int64_t at) -> Term {
    const std::int64_t index = line * operand.row_stride + at * operand.k_stride;
    const bool half = type == Format::bf16 || type == Format::f16;
    return term_of(type, half ? reinterpret_cast<const std::uint16_t*>(operand.data)[index] : operand.data[index]);
  };
  int scale = 0;
  bool scale_is_nan = false;
  if (unit.scaling == StepScaling::e8m0_per_32) {
    const int left = scale_code(*lines.rows, i, k), right = scale_code(*lines.columns, j, k);
    scale = left + right - 254;
    scale_is_nan = left == 0xFF || right == 0xFF;
  }
  const int fractions = fraction_of(lines.row_type) + fraction_of(lines.column_type);
  const auto left = [&](int p) { return read(lines.row_type, *lines.rows, i, k + p); };
  const auto right = [&](int p) { return read(lines.column_type, *lines.columns, j, k + p); };
  const auto all = [](int) { return true; };
  return float_of(fused_products(unit, left, right, all, count, fractions, scale, scale_is_nan, bits_of_float(c)));
}

// Whether an accumulator is in the range of f32 steps: 0 or within 2^-110 to 2^70.
__device__ inline bool in_range(float c) {
  const std::uint32_t magnitude = bits_of_float(c) & 0x7FFFFFFF;
  return magnitude == 0 || (magnitude >= (127u - 110) << 23 && magnitude < (127u + 70) << 23);
}

}  // namespace assay::device::emulated
