#pragma once
// Two values of 16 bits in a word, as convert.cuh rounds one.

#include "device/formats/convert.cuh"

namespace assay::device {

// Two values of 16 bits, that of `low` in the low half.
template <Format kOut>
ASSAY_BOTH std::uint32_t encode_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  if constexpr (kOut == Format::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  if constexpr (kOut == Format::bf16) {
    return encode_bf16(low) | static_cast<std::uint32_t>(encode_bf16(high)) << 16;
  } else {
    return encode_f16(low) | static_cast<std::uint32_t>(encode_f16(high)) << 16;
  }
#endif
}

}  // namespace assay::device
