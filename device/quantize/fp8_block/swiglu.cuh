#pragma once
// FP8 block scaling, x from gate and up: x = RN(RN(silu(gate)) * up) in the type of both, as the patch is loaded. What follows does not
// know of it.
//
//   traffic   4 B read for the 2 B of an element: 5.03 B/element rowwise, 6.06 in both directions
//   ceiling   HBM: one aligned tensor reaches 0.85 of the rate of a copy in both directions and 0.86 to 0.91 rowwise, about what the
//             same kernels reach without. Two instructions of the special function unit an element, and about ten others
//   steps     silu is gate / (1 + 2^(-gate log2 e)) by ex2.approx and div.full. div.full divides both sides by 4 where 1 + e is above
//             2^126, which is exact for gates of 16 bits wherever it is done: here always, and no operand is looked at. Below 2^-126
//             a power is nothing beside 1, so that ex2 may flush it
//   matches   reference/recipes/swiglu.h

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/formats/encode_pair.cuh"
#include "device/quantize/matrix_patch.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

__device__ __forceinline__ float silu(float gate) {
  float power, quotient;
  const float exponent = multiply(gate, -0x1.715476p0f);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  const float quarter = fused(power, 0.25f, 0.25f);
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(quarter));
  return multiply(multiply(gate, 0.25f), quotient);
}

// Two elements.
template <Format X>
__device__ __forceinline__ std::uint32_t swiglu_word(std::uint32_t gate, std::uint32_t up) {
  using E = Element<X>;
  const std::uint32_t h = encode_pair<X>(silu(E::widen(gate, 0)), silu(E::widen(gate, 1)));
  return encode_pair<X>(multiply(E::widen(h, 0), E::widen(up, 0)), multiply(E::widen(h, 1), E::widen(up, 1)));
}

// As load_patch(): `gate` is the patch's first gate; its up lies `columns` elements further, and the next row twice as far. Rows are
// loaded kStep at a time, as gate and up of all would not fit the registers.
template <Format X, bool kAligned, int kRows>
__device__ __forceinline__ void load_gated_patch(MatrixPatch<X, kRows>& patch, const unsigned char* gate, std::int64_t columns,
                                                 int rows_inside, int columns_inside) {
  constexpr int kStep = 4;
  const std::int64_t bytes = columns * Element<X>::kBytes;
#pragma unroll
  for (int first = 0; first < kRows; first += kStep) {
    MatrixPatch<X, kStep> gates, ups;
    load_patch<X, kAligned>(gates, gate + 2 * first * bytes, 2 * columns, rows_inside - first, columns_inside);
    load_patch<X, kAligned>(ups, gate + (2 * first + 1) * bytes, 2 * columns, rows_inside - first, columns_inside);
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
#pragma unroll
      for (int w = 0; w < MatrixPatch<X, kStep>::kWords; ++w) {
        patch.word[first + i][w] = swiglu_word<X>(gates.word[i][w], ups.word[i][w]);
      }
    }
  }
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
