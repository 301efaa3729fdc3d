#pragma once
// e_max of the kernels of compute_tile.cuh, on tensor cores: the largest e_a + e_b of a step's products.
//
// Each operand has a second form, B^e for an element of exponent e (0 for a zero), B = 2^6 or 2^4. A sum of fewer than
// B such products, each B^(e_a + e_b), lies in [B^m, B^(m+1)) for the largest m of e_a + e_b: its f32 exponent gives
// m for any rounding of the instruction.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/mma.cuh"
#include "device/emulated_gemm/tile_stage.cuh"

namespace assay::device::emulated {

// floor(log_B) of a sum of powers of B that is not zero.
template <int kBase>
__device__ int level_of(float sum) {
  const int exponent = static_cast<int>(bits_of_float(sum) >> 23) - 127;
  if constexpr (kBase == 4) return exponent >> 2;
  return ((exponent + 72) * 171 >> 10) - 12;  // (n * 171) >> 10 is n / 6 for n in [0, 255]
}

// Sums of powers of step `step`, whose levels are the largest e_a + e_b: for the thread's 4 rows, and its 2 columns of
// the 8 that have the number `tile` among the warp's.
template <int kBase, int kProducts>
__device__ void power_sums(const TileStage& stage, int step, int warp_row, int warp_column, int tile, float (&sums)[kRows][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  const std::uint32_t* columns = stage.powers[kTileRows + warp_column + 8 * tile + g];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t* upper = stage.powers[warp_row + 16 * half + g];
    const std::uint32_t* lower = stage.powers[warp_row + 16 * half + 8 + g];
    float d[4] = {0, 0, 0, 0};
    if constexpr (kBase == 6) {
      // The order of k in an instruction's slots does not matter as long as both operands have the same.
#pragma unroll
      for (int part = 0; part < kProducts / 16; ++part) {
        const int at = step * (kProducts / 2) + part * 8 + 2 * q;
        const auto two_words = [&](const std::uint32_t* line) { return *reinterpret_cast<const uint2*>(line + at); };
        const uint2 top = two_words(upper), bottom = two_words(lower), right = two_words(columns);
        const std::uint32_t a[4] = {top.x, bottom.x, top.y, bottom.y}, b[2] = {right.x, right.y};
        multiply_k16(d, a, b);
      }
    } else {
#pragma unroll
      for (int part = 0; part < kProducts / 8; ++part) {
        const int at = step * (kProducts / 2) + part * 4 + q;
        const std::uint32_t a[2] = {upper[at], lower[at]}, b[1] = {columns[at]};
        float own[4] = {0, 0, 0, 0};
        multiply_k8(own, a, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) d[i] = fmaxf(d[i], own[i]);
      }
    }
    sums[2 * half][0] = d[0];
    sums[2 * half][1] = d[1];
    sums[2 * half + 1][0] = d[2];
    sums[2 * half + 1][1] = d[3];
  }
}

}  // namespace assay::device::emulated
