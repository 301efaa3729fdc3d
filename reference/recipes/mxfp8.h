#pragma once
// MXFP8 (spec mxfp8-1.2): 32 elements share a scale of E8M0, a power of two. For one block:
//
//   A    = max |x|                            NaN passed over; 0 if there is nothing else
//   E    = encode_e8m0(fl(A * r))           r = fl(1/448) = 0x3B124925 (e4m3), fl(1/57344) = 0x37924925 (e5m2)
//   q[i] = fp8(fl(x[i] * 2^(127 - E)))        nearest even, saturating, NaN becomes 0x7F
//
// The product with r is rounded to nearest before its exponent is rounded up, so dividing by 448 is not the same (the results
// differ for one f32 value of each format). A = 0 gives E = 0; A = infinity gives E = 0xFE, whose multiplier 2^-127 turns infinity
// into the largest code. E is at most 0xFE, and the multiplier at E = 0 is 2^127.
//
// Blocks (spec mxfp8-1.1) are 1x32 along a row (rowwise) or 32x1 down a column (columnwise), counted from each group's first row
// and from column 0; the last block of a row or column may be short. Both directions store their codes row-major [rows, columns]:
// columnwise data are NOT transposed. With two_dimensional (spec mxfp8-1.4) one A serves a tile of 32x32: the two directions then
// have the same codes, and each scale is repeated for every row (column) of its tile.
//
// Scales (spec mxfp8-2.1), each group by itself:
//   rowwise     [ru(M,128), ru(cd(K,32),4)], scale of (m, k) at [m][k/32]
//   columnwise  [ru(cd(M,32),4), ru(K,128)], scale of (m, k) at [m/32][k]
// Compact: only these elements are written. Swizzled: (i, j) = (m, k/32) or (k, m/32) at swizzled_index(i, j, tiles of j),
// and every other byte of the group is 0.
//
// ZeroSign::positive: an exact -0 in x becomes +0 (a kernel that computes fma(x, scale, +0)); negatives that underflow keep
// their sign either way.
//
// Back (spec mxfp8-3.1): y = round(fl(float(q) * 2^(E - 127))); E = 0 is 2^-127, E = 0xFF is NaN.

#include <cstdint>

#include "reference/recipes/dequantize.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay {

// The checks of quantize() and dequantize() have been made.
void quantize_mxfp8(const QuantizeProblem& problem, const QuantizeOutput& output);
void dequantize_mxfp8(const DequantizeProblem& problem, void* output);

// E of a block whose largest magnitude is `amax` (0 or more, infinity included). `output` is e4m3 or e5m2.
std::uint8_t mxfp8_scale(float amax, Format output);

namespace scalar {
void quantize_mxfp8(const QuantizeProblem& problem, const QuantizeOutput& output);
void dequantize_mxfp8(const DequantizeProblem& problem, void* output);
std::uint8_t mxfp8_scale(float amax, Format output);
}  // namespace scalar

}  // namespace assay
