#pragma once
// NVFP4 4over6 (spec nvfp4-5.1): a block is quantized twice, its largest value mapped to 6 and to 4, and the smaller error
// wins. With G, A, S, c as in nvfp4.h and M = nvfp4_e4m3_max:
//
//   base = fl(fl(A / 6) * S)                          a true division here
//   d6   = e4m3(min(base, 448))                       d4 = e4m3(min(fl(base * 1.5), 448))
//   dq   = fl(fl(fl(e2m1 * float(d)) * G) / (6M))     for each of the two
//   err  = sum of |fl(dq - x)|  or  fl(fl(dq - x)^2)  over the block's elements in order, each sum rounded to f32, from 0
//   d4 is taken if err4 < err6, else d6 (so too where an error is NaN)
//
// Order (spec nvfp4-5.2): a block's elements from the lowest column (rowwise) or row (columnwise) upward; elements that a short
// block lacks add nothing. With two_dimensional a tile chooses once in each direction. Rowwise: each of its 16 rows has an error,
// summed along the row. Columnwise: each of its 16 columns has one, summed down the column. The 16 are added as a warp's
// shuffle does with distances 8, 4, 2, 1: first e[i] + e[i+8] for i < 8, then those 8 values at distance 4, and so on; a row
// or column that the tile lacks is 0. The sums of the two directions can round differently, so that near a tie one takes d4 and
// the other d6; and each direction has its own G.

#include <cstdint>

#include "reference/recipes/quantize.h"

namespace assay {

constexpr float kFourOverSixLargest = 448;  // of d4 and d6, for every M

}  // namespace assay
