#pragma once
// NVFP4, 4over6: two scales of a block, for a largest code of 6 and of 4, the error that the codes of the block have
// under each, summed from lane to lane as four_over_six.h says, and which of the two is taken.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/quantize/nvfp4/e2m1_codes.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/scales.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// For the block of threads, with 4over6: c of every scale, and the value of every code under every scale.
struct Tables {
  float multiplier[kTile];
  float value[8 * kTile];

  // By 128 threads.
  __device__ void fill(const Scaling& scaling, float e4m3_max, int thread) {
    const float scale = decode_fp8<Format::e4m3>(static_cast<std::uint32_t>(thread));
    multiplier[thread] = multiplier_of(static_cast<std::uint32_t>(thread), scaling);
    const float denominator = multiply(6.0f, e4m3_max);
#pragma unroll 1
    for (std::uint32_t code = 0; code < 8; ++code) {
      value[thread * 8 + code] = divide(multiply(multiply(decode_e2m1(code), scale), scaling.amax), denominator);
    }
  }
};

// 4over6: the scales for a largest code of 6 (low byte) and of 4.
__device__ __forceinline__ std::uint32_t candidates_of(std::uint32_t amax_bits, const Scaling& scaling) {
  const float base = multiply(divide(float_of_bits(amax_bits), 6.0f), scaling.scale);
  return kTwoMagnitudes & encode_fp8x2<Format::e4m3>(base, multiply(base, 1.5f));
}

// The error of one element under a scale; 0 for a missing element.
__device__ __forceinline__ float error_of(float x, bool inside, std::uint32_t scale, const Tables& tables, bool squared) {
  const std::uint32_t code = count_nearest(multiply(x, tables.multiplier[scale])) - kBitsOfCodeZero;
  const float difference = add(tables.value[scale * 8 + code], -magnitude(x));  // the signs agree, so that of x does not matter
  return !inside ? 0.0f : squared ? multiply(difference, difference) : magnitude(difference);
}

// The error of a row's block, the same in both of its lanes.
template <Format X>
__device__ __forceinline__ float row_error(const Patch<X>& patch, int row, int columns_inside, std::uint32_t scale,
                                           const Tables& tables, bool squared, const Lane& lane) {
  float error[8], sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    error[i] = error_of(patch.value(row, i), i < columns_inside, scale, tables, squared);
    sum = add(sum, error[i]);
  }
  sum = __shfl_sync(kAllLanes, sum, lane.lane & ~4);  // of the first 8 columns; the others follow
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = add(sum, error[i]);
  return __shfl_sync(kAllLanes, sum, lane.lane | 4);
}

// The error of a column's block, the same in all of its lanes.
template <Format X>
__device__ __forceinline__ float column_error(const Patch<X>& patch, int column, int rows_inside, std::uint32_t scale,
                                              const Tables& tables, bool squared, const Lane& lane) {
  float error[4], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) error[i] = error_of(patch.value(i, column), i < rows_inside, scale, tables, squared);
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    float own = sum;
#pragma unroll
    for (int i = 0; i < 4; ++i) own = add(own, error[i]);
    sum = __shfl_sync(kAllLanes, own, (lane.lane & ~3) | q);
  }
  return sum;
}

// The error of a tile of 16 x 16 as rows sum it, the same in all of its lanes.
template <Format X>
__device__ __forceinline__ float tile_error_of_rows(const Patch<X>& patch, int rows_inside, int columns_inside,
                                                    std::uint32_t scale, const Tables& tables, bool squared, const Lane& lane) {
  float error[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float of_row = row_error(patch, i, columns_inside, scale, tables, squared, lane);
    error[i] = i < rows_inside ? of_row : 0.0f;
    error[i] = add(error[i], __shfl_xor_sync(kAllLanes, error[i], 2));  // 8 rows away
    error[i] = add(error[i], __shfl_xor_sync(kAllLanes, error[i], 1));  // 4 rows away
  }
  return add(add(error[0], error[2]), add(error[1], error[3]));
}

// The same as columns sum it: the other order rounds differently.
template <Format X>
__device__ __forceinline__ float tile_error_of_columns(const Patch<X>& patch, int rows_inside, int columns_inside,
                                                       std::uint32_t scale, const Tables& tables, bool squared,
                                                       const Lane& lane) {
  float error[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float of_column = column_error(patch, c, rows_inside, scale, tables, squared, lane);
    error[c] = c < columns_inside ? of_column : 0.0f;
    error[c] = add(error[c], __shfl_xor_sync(kAllLanes, error[c], 4));  // 8 columns away
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) error[c] = add(error[c], error[c + 4]);
  return add(add(error[0], error[2]), add(error[1], error[3]));
}

__device__ __forceinline__ std::uint32_t choose(float error_six, float error_four, std::uint32_t candidates) {
  return error_four < error_six ? candidates >> 8 : candidates & 0xFFu;
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
