#pragma once
// The kernel's own wgmma.cuh, but for its products, which the host computes.

#define multiply multiply_by_instruction  // never called: the compiler emits no assembly
#define multiply_scales multiply_scales_by_instruction
#include_next "device/fp8_block_gemm/wgmma.cuh"
#undef multiply
#undef multiply_scales

#include "device/tests/mutants/rooms/sm90/products.h"

namespace assay::device::fp8_block {

template <int kColumns, Format kA, Format kB>
void multiply(float (&sums)[kColumns / 2], std::uint32_t a, std::uint32_t b, int add) {
  host::wgmma_mma_async(sums, kColumns, kA, kB, a, b, add);
}

inline void multiply_scales(float (&sums)[48], std::uint32_t a, std::uint32_t b) { host::wgmma_mma_async_bf16(sums, 96, a, b); }

}  // namespace assay::device::fp8_block
