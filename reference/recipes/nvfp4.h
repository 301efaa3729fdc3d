#pragma once
// NVFP4 (spec nvfp4-1.1): codes of E2M1, an E4M3 scale for 16 elements, an f32 scale for the tensor or group. With G the
// amax of the tensor, A the amax of a block (NaN passed over in both) and M = 448, or 256 if nvfp4_e4m3_max says so:
//
//   S    = min(fl(6M / G), FLT_MAX)             1 if G is 0 or infinite; FLT_MAX if G is NaN
//   t    = fl(S * 0x3E2AAAAB)                   that is fl(1/6): a product, not a division
//   d8   = e4m3(min(fl(A * t), FLT_MAX))        stored
//   w    = fl(1 / S)
//   c    = min(fl(1 / fl(float(d8) * w)), FLT_MAX)
//   q[i] = e2m1(fl(x[i] * c))                   nearest even, saturating at 6; NaN becomes +6 (0x7), -0 is 0x8
//
// A small block can have d8 = 0 (spec nvfp4-1.2): then c = FLT_MAX and its codes are +-6 (0 stays 0), though they decode to 0.
//
// Rowwise blocks (spec nvfp4-1.4) are 1x16 along a row, columnwise 16x1 down a column, counted from each group's first row and
// from column 0; the last may be short. With two_dimensional one A, d8 and c serve a tile of 16x16, in both directions; the scale
// byte is repeated for each row (column) of the tile.
// Stored: rowwise [M, K/2] bytes, columnwise TRANSPOSED [K, M/2], two codes per byte, the lower column (row) in the low
// nibble. M and K are those of the group; each group is transposed at its own place. Packed extents are even: quantize()
// refuses others. Scales: rowwise [ru(M,128), ru(cd(K,16),4)], scale of (m, k) at [m][k/16]; columnwise
// [ru(K,128), ru(cd(M,16),4)], scale at [k][m/16]; compact, or swizzled with (i, j) the same coordinates and all other bytes
// 0. Padding of compact scales is not written.
//
// G (spec nvfp4-1.3): rowwise `amax` or, if null, max |x| of the group; columnwise `columnwise_amax` or, if null, max |y| of the
// transformed group with hadamard, else the rowwise G. The G used is written to output.amax and output.columnwise_amax.
//
// With hadamard the columnwise input is y, the transform of x down the rows (hadamard.h); rowwise is of x itself.
// With stochastic_rounding q is stochastic_e2m1(fl(x[i] * c), byte) (stochastic_rounding.h). The byte of element (m, k) is
// rowwise_random[row * K + k] (row of the whole matrix) or columnwise_random[first * K + k * M + m], `first` and M being the
// group's first row and rows: the order of the codes as stored, one byte per code. With draws each group is a matrix by itself
// with a state of its own (random_draws.h).
// With four_over_six each block chooses between two scales (four_over_six.h); a 2-D tile chooses once rowwise, for its 16
// rows, and once columnwise, for its 16 columns: the two may differ.
// ZeroSign::positive: an exact -0 in x (in y) becomes +0 first.
//
// Back (spec nvfp4-6.1): f = fl(fl(float(d8) * G) * fl(1 / (6M))), y = round(fl(e2m1 * f)).

#include <cstdint>

#include "reference/recipes/dequantize.h"
#include "reference/recipes/quantize.h"

namespace assay {

// The checks of quantize() and dequantize() have been made. Errors, before anything is written: a given amax below 0.
void quantize_nvfp4(const QuantizeProblem& problem, const QuantizeOutput& output);
void dequantize_nvfp4(const DequantizeProblem& problem, void* output);

// Errors (InvalidArgument): an element of amax or columnwise_amax is below 0.
void check_nvfp4_amax(const QuantizeProblem& problem);

namespace scalar {
void quantize_nvfp4(const QuantizeProblem& problem, const QuantizeOutput& output);
void dequantize_nvfp4(const DequantizeProblem& problem, void* output);

// S, d8 and c of the formulas above.
float nvfp4_tensor_scale(float tensor_amax, float e4m3_max);
std::uint8_t nvfp4_block_scale(float block_amax, float tensor_scale);
float nvfp4_multiplier(std::uint8_t block_scale, float tensor_scale);
}  // namespace scalar

}  // namespace assay
