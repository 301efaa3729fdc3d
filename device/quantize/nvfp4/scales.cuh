#pragma once
// NVFP4, scales: the E4M3 scale of a block from its amax, and from the scale c of nvfp4.h, by which the elements of
// the block are multiplied. An earlier launch has stored the values that depend on the amax of the group (nvfp4.cu).

#include <cfloat>
#include <cstdint>

#include "device/formats/convert.cuh"
#include "device/quantize/nvfp4/call.h"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

using Scaling = Nvfp4Scaling;

__device__ __forceinline__ Scaling load_scaling(const Scaling* scalings, std::uint32_t group) {
  const float4 all = __ldg(reinterpret_cast<const float4*>(scalings + group));
  return {all.x, all.y, all.z, bits_of_float(all.w)};
}

// c of a scale.
__device__ __forceinline__ float multiplier_of(std::uint32_t scale, const Scaling& scaling) {
  return fminf(reciprocal(multiply(decode_fp8<Format::e4m3>(scale), scaling.inverse)), FLT_MAX);
}

// Of two scales.
__device__ __forceinline__ void multipliers_of(std::uint32_t scales, const Scaling& scaling, float& first, float& second) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t values;  // f16 holds them all
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(values) : "h"(static_cast<std::uint16_t>(scales)));
  const float low = widen_f16(values & 0xFFFFu), high = widen_f16(values >> 16);
  first = fminf(reciprocal(multiply(low, scaling.inverse)), FLT_MAX);
  second = fminf(reciprocal(multiply(high, scaling.inverse)), FLT_MAX);
#else
  first = multiplier_of(scales & 0xFFu, scaling);
  second = multiplier_of(scales >> 8, scaling);
#endif
}

// Scales of two blocks, the first in the low byte. Without 4over6. An amax that was given is 0 or more; otherwise scales still
// have no sign, and all indices stay inside the tables.
constexpr std::uint32_t kTwoMagnitudes = 0x7F7F;
__device__ __forceinline__ std::uint32_t scales_of(uint2 amax_bits, const Scaling& scaling) {
  const float sixth = multiply(scaling.scale, float_of_bits(0x3E2A'AAABu));  // S/6
  return kTwoMagnitudes &
         encode_fp8x2<Format::e4m3>(multiply(float_of_bits(amax_bits.x), sixth), multiply(float_of_bits(amax_bits.y), sixth));
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
