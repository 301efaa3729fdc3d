#pragma once
// The random Hadamard transform of NVFP4 (spec nvfp4-3.1): 16 consecutive elements down a column of bf16,
//
//   y[j] = bf16( sum over i of  s[i] * (-1)^popcount(i AND j) * 0.25 * x[i] )      s[i] = -1 where bit i of the mask is set
//
// Each sum is ONE fused tensor-core step (spec tensor-core-1.1; SM90 and SM100 alike): 16 exact products with the
// bf16 factors +-0.25 and a zero accumulator, every product cut toward zero to 25 fraction bits below the largest
// exponent, summed exactly, truncated to f32. That f32 is then rounded to bf16, nearest even; 2^128 and more is infinity.
// A product has the exponent of its x less 2; subnormal x are not renormalised. NaN, or infinities of both signs in the
// sum, give 0x7FFF; another infinity wins. A zero sum is +0.
//
// Groups of rows that are not multiples of 16 (spec nvfp4-3.2): the terms beyond the last row are zeros, and of the 16 sums only
// those that have a row are kept, so y has as many rows as x; the others do not enter any amax.

#include <array>
#include <cstdint>
#include <span>

namespace assay {

// `columns` of them side by side: reads x[i * x_stride + column] for i < `terms` (0 to 16; the rest are zeros), writes
// y[j * y_stride + column] for all 16 j. x and y do not overlap.
void hadamard_transform(std::uint16_t sign_mask, const std::uint16_t* x, std::int64_t x_stride, std::int64_t terms,
                        std::int64_t columns, std::uint16_t* y, std::int64_t y_stride);

namespace scalar {
// One column: all 16 sums of up to 16 terms (the rest are zeros), as bf16 codes.
std::array<std::uint16_t, 16> hadamard_transform(std::uint16_t sign_mask, std::span<const std::uint16_t> x);
}  // namespace scalar

}  // namespace assay
