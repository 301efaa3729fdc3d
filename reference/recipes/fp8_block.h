#pragma once
// FP8 block scaling (spec fp8-block-1.2): 128 elements along K (rowwise) or along the rows (columnwise) share an f32 scale,
// or a tile of 128 x 128 does. For one block of a matrix or group, with MAX = 448 (e4m3) or 57344 (e5m2):
//
//   amax      = max |x| over the block's elements      NaN passed over; 0 if there is nothing else
//   scale     = scale_from_amax(amax, MAX, pow2, epsilon, largest finite value of the type of x)    see per_tensor.h
//   scale_inv = fl(1 / scale)                          stored
//   q         = fp8(fl(float(x) * scale))              nearest even, saturating, NaN becomes 0x7F, -0 kept
//
// Blocks (spec fp8-block-1.1) are counted from the group's first row and from column 0; those at the edges are shorter.
// block_1x128 has a scale for each direction by itself, so the two directions' codes differ; block_128x128 has one for the tile,
// and its columnwise codes are the transposed rowwise ones. Columnwise codes are transposed, each group at its own place.
// Scales lie as scale_shape.h says, each group padded by itself; padding is not written. ZeroSign::positive: the
// product is fma(x, scale, +0), whose exact zeros are +0.
//
// Activation::swiglu: x is what swiglu.h makes of gate and up.

#include "reference/recipes/quantize.h"

namespace assay {

// The checks of quantize() have been made; each direction that is on has buffers for both outputs.
void quantize_fp8_block(const QuantizeProblem& problem, const QuantizeOutput& output);

namespace scalar {
void quantize_fp8_block(const QuantizeProblem& problem, const QuantizeOutput& output);
}  // namespace scalar

}  // namespace assay
