#pragma once
// Largest magnitudes in one instruction per word, for kernels that clear the sign only at the end.

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device {

// Element<X>::accumulate_absmax in one instruction, with a sign that is to be ignored (spec conventions-1.2). Magnitudes
// computed first would be held in registers beside the elements.
template <Format X>
__device__ __forceinline__ std::uint32_t accumulate_absmax(std::uint32_t maximum, std::uint32_t word) {
#if __CUDA_ARCH__ >= 860
  if constexpr (X == Format::bf16) {
    asm("max.xorsign.abs.bf16x2 %0, %0, %1;" : "+r"(maximum) : "r"(word));
    return maximum;
  } else if constexpr (X == Format::f16) {
    asm("max.xorsign.abs.f16x2 %0, %0, %1;" : "+r"(maximum) : "r"(word));
    return maximum;
  }
#endif
  return Element<X>::accumulate_absmax(maximum, word);
}
template <Format X>
__device__ __forceinline__ std::uint32_t without_sign(std::uint32_t maximum) {
  return maximum & (Element<X>::kPerWord == 2 ? 0x7FFF'7FFFu : 0x7FFF'FFFFu);
}

}  // namespace assay::device
