#pragma once
// FP8 with one scale for each group: shared parts of the kernels of this folder, and their launches.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/layout/groups.h"
#include "device/support/stream.h"

namespace assay::device::per_tensor {

// The scale of each group: given, or from its amax. It is read in two steps, so that a kernel can start other loads between them:
// first the word in memory, then the scale that it means.
struct TensorScales {
  const std::uint32_t* in_memory = nullptr;  // [groups] bits of f32
  bool given = false;
  float max = 448;
  float epsilon = 0;
  bool pow2 = false;

  __device__ std::uint32_t read(int group) const { return __ldg(in_memory + group); }
  __device__ float scale(std::uint32_t read) const {
    return given ? float_of_bits(read) : scale_from_amax(read, max, pow2, epsilon, 0x7F7F'FFFFu);  // FLT_MAX
  }
};

struct CastArguments {
  const void* x;
  Rows rows;
  std::int64_t columns;
  const float* noop;
  std::uint32_t* status;
  TensorScales scales;
  float zero;             // addend of the product: the sign of zeros
  std::uint8_t* rowwise;  // any output may be null
  std::uint8_t* columnwise;
  std::uint32_t* amax_bits;  // accumulated
  float* scale_inv;
  float* scale;
  float* tile_sums;  // of dbias
  bool vectors;      // rows of x and of rowwise codes begin at whole vectors
  bool reversed;     // the last part first
};

// scale_inv and scale of all groups, by one block.
__device__ inline void write_scales(const TensorScales& scales, int groups, float* scale, float* scale_inv) {
  for (int t = static_cast<int>(threadIdx.x); t < groups; t += static_cast<int>(blockDim.x)) {
    const float value = scales.scale(scales.read(t));
    if (scale != nullptr) scale[t] = value;
    if (scale_inv != nullptr) scale_inv[t] = stored_float(reciprocal(value));
  }
}

// Accumulates the largest of a warp's gathered maxima in *amax_bits. Most warps find it already large enough.
template <Format kX>
__device__ void accumulate_amax(std::uint32_t* amax_bits, std::uint32_t gathered) {
  const std::uint32_t bits = __reduce_max_sync(0xFFFFFFFFu, Element<kX>::amax_bits(gathered));
  if (threadIdx.x % 32 == 0 && bits > *static_cast<volatile std::uint32_t*>(amax_bits)) atomicMax(amax_bits, bits);
}

template <Format kX>
__device__ std::uint32_t load_element(const void* x, std::int64_t i) {
  if constexpr (kX == Format::f32) {
    return static_cast<const std::uint32_t*>(x)[i];
  } else {
    return static_cast<const std::uint16_t*>(x)[i];
  }
}

// 16 bytes of x: 8 elements, or 4 of f32.
template <Format kX>
constexpr unsigned kSpan = 16 / Element<kX>::kBytes;

__device__ inline std::uint32_t word_of(const uint4& vector, int i) {
  return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
}

// Element i of a vector; i is known after unrolling.
template <Format kX>
__device__ float element_of(const uint4& vector, int i) {
  constexpr int kPerWord = Element<kX>::kPerWord;
  return Element<kX>::widen(word_of(vector, i / kPerWord), i % kPerWord);
}

template <Format kX>
__device__ std::uint32_t accumulate_absmax_vector(std::uint32_t gathered, const uint4& vector) {
  using E = Element<kX>;
  return E::accumulate_absmax(
      E::accumulate_absmax(E::accumulate_absmax(E::accumulate_absmax(gathered, vector.x), vector.y), vector.z), vector.w);
}

// Codes of elements first, ..., first + 3 of a vector, the first in the lowest byte.
template <Format kX, Format kOut>
__device__ std::uint32_t encode_four(const uint4& vector, int first, float scale, float zero) {
  const auto product = [&](int i) { return multiply_with_zero(element_of<kX>(vector, first + i), scale, zero); };
  return encode_fp8x4<kOut>(product(0), product(1), product(2), product(3));
}

// Rowwise codes alone, with the amaxes if they are requested (run_through.cu).
void launch_run_through(Format x_type, Format output, const CastArguments& a, Stream stream);
// The amaxes alone (run_through.cu).
void launch_amax(Format x_type, const CastArguments& a, Stream stream);
// Everything, by tiles: of one tensor whose columns begin at whole vectors (cast_tiles.cu), and of any groups
// (cast_windows.cu).
void launch_tiles(Format x_type, Format output, const CastArguments& a, Stream stream);
void launch_windows(Format x_type, Format output, const CastArguments& a, Stream stream);

// launch<kX, kOut>() of a call's types.
template <class Launch>
void with_types(Format x_type, Format output, const Launch& launch) {
  const auto of_x = [&]<Format kOut>() {
    switch (x_type) {
      case Format::bf16: return launch.template operator()<Format::bf16, kOut>();
      case Format::f16: return launch.template operator()<Format::f16, kOut>();
      default: return launch.template operator()<Format::f32, kOut>();
    }
  };
  output == Format::e4m3 ? of_x.template operator()<Format::e4m3>() : of_x.template operator()<Format::e5m2>();
}

}  // namespace assay::device::per_tensor
