#pragma once
// Shared by the kernels of this folder: the values of 16 bytes of output at a time, and the launches.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/dequantize/kernels.h"
#include "device/formats/convert.cuh"
#include "device/formats/encode_pair.cuh"
#include "device/support/launch.cuh"

namespace assay::device::dequantization {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// Whether the splits are valid for two codes per byte down the rows: no group has an odd number of rows. The same in all threads.
__device__ inline bool has_odd_split(const DequantizeCall& call) {
  if (call.rows.splits == nullptr) return false;
  int odd = 0;
  for (int t = static_cast<int>(threadIdx.x); t < call.rows.groups; t += kThreads) {
    const std::int64_t split = load_split(call.rows, t);
    odd |= split > 0 && split % 2 != 0;
  }
  if (__syncthreads_or(odd) == 0) return false;
  if (blockIdx.x == 0 && threadIdx.x == 0 && call.status != nullptr) atomicOr(call.status, kStatusOddPackedExtent);
  return true;
}

template <Format kOut>
constexpr int kLaneValues = kOut == Format::f32 ? 4 : 8;

// Values of the two FP8 codes in the low bytes. A NaN code may give any NaN: only one kind is stored.
template <Format kData>
__device__ void decode_pair(std::uint32_t codes, float (&values)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint32_t halves;
  if constexpr (kData == Format::e4m3) {
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(codes)));
  } else {
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(codes)));
  }
  values[0] = widen_f16(halves & 0xFFFFu);
  values[1] = widen_f16(halves >> 16);
#else
  values[0] = decode_fp8<kData>(codes & 0xFFu);
  values[1] = decode_fp8<kData>(codes >> 8 & 0xFFu);
#endif
}

// Decoded values times their factors, to output element `at` and those after it.
template <Format kOut>
__device__ void store_values(void* output, std::int64_t at, const float (&values)[kLaneValues<kOut>],
                             const float (&factors)[kLaneValues<kOut>]) {
  const auto product = [&](int i) { return multiply(values[i], factors[i]); };
  uint4 words;
  if constexpr (kOut == Format::f32) {
    const auto bits = [&](int i) { return bits_of_float(stored_float(product(i))); };
    words = make_uint4(bits(0), bits(1), bits(2), bits(3));
  } else {
    const auto pair = [&](int i) { return encode_pair<kOut>(product(i), product(i + 1)); };
    words = make_uint4(pair(0), pair(2), pair(4), pair(6));
  }
  __stcs(reinterpret_cast<uint4*>(static_cast<char*>(output) + at * (kOut == Format::f32 ? 4 : 2)), words);
}

// The codes of a lane, the first in the lowest bits: 2 to 8 bytes.
template <Format kData, Format kOut>
struct LaneCodes {
  static constexpr int kBits = kData == Format::e2m1 ? 4 : 8, kBytes = kLaneValues<kOut> * kBits / 8;
  std::uint32_t words[kBytes == 8 ? 2 : 1];

  __device__ void load(const void* data, std::int64_t at) {  // `at` counts codes
    const char* const from = static_cast<const char*>(data) + at * kBits / 8;
    if constexpr (kBytes == 8) {
      const uint2 both = __ldcs(reinterpret_cast<const uint2*>(from));
      words[0] = both.x, words[1] = both.y;
    } else if constexpr (kBytes == 4) {
      words[0] = __ldcs(reinterpret_cast<const std::uint32_t*>(from));
    } else {
      words[0] = __ldcs(reinterpret_cast<const std::uint16_t*>(from));
    }
  }
  __device__ void decode_all(float (&values)[kLaneValues<kOut>]) const {
#pragma unroll
    for (int i = 0; i < kLaneValues<kOut>; i += 2) {
      float pair[2];
      if constexpr (kBits == 8) {
        decode_pair<kData>(words[i / 4] >> i % 4 * 8, pair);
      } else {
        pair[0] = decode_e2m1(words[0] >> i * 4 & 0xFu);
        pair[1] = decode_e2m1(words[0] >> (i + 1) * 4 & 0xFu);
      }
      values[i] = pair[0], values[i + 1] = pair[1];
    }
  }
};

// Blocks per SM, which sets the registers of a thread.
template <Recipe kRecipe, Direction kDirection>
constexpr int kDequantizeBlocks = kRecipe == Recipe::mxfp8 || (kRecipe == Recipe::nvfp4 && kDirection == Direction::columnwise)
                                      ? 4
                                      : 5;

// A block for each of `down` parts of the rows and each strip of `strip_columns`.
template <class Kernel>
void start_blocks(Kernel kernel, const char* name, const DequantizeCall& call, std::int64_t down, std::int64_t strip_columns,
                  Stream stream) {
  const std::int64_t across = (call.columns + strip_columns - 1) / strip_columns, blocks = down * across;
  if (blocks >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more than 2^31 tiles");
  const float nvfp4_factor = 1.0f / (6.0f * call.nvfp4_e4m3_max);
  launch_kernel(name, kernel, static_cast<unsigned>(blocks), kThreads, 0, stream, call, static_cast<unsigned>(across),
                nvfp4_factor);
}

// launch<kData, kOut>() of the call's formats.
template <Recipe kRecipe, class Launch>
void with_formats(const DequantizeCall& call, const Launch& launch) {
  const auto of_data = [&]<Format kData>() {
    switch (call.output_type) {
      case Format::bf16: return launch.template operator()<kData, Format::bf16>();
      case Format::f16: return launch.template operator()<kData, Format::f16>();
      default: return launch.template operator()<kData, Format::f32>();
    }
  };
  if constexpr (kRecipe == Recipe::nvfp4) {
    of_data.template operator()<Format::e2m1>();
  } else {
    call.data_type == Format::e4m3 ? of_data.template operator()<Format::e4m3>() : of_data.template operator()<Format::e5m2>();
  }
}

}  // namespace assay::device::dequantization
