#pragma once
// The kernel's own wgmma.cuh, but for its products, which the host computes.

#define multiply multiply_by_instruction  // never called: the compiler emits no assembly
#include_next "device/fp8_block_gemm/wgmma.cuh"
#undef multiply

#include "device/tests/mutants/rooms/sm90/products.h"

namespace assay::device::fp8_block {

template <int kColumns, Format kA, Format kB>
void multiply(float (&sums)[kColumns / 2], std::uint32_t a, std::uint32_t b, int add) {
  host::wgmma_mma_async(sums, kColumns, kA, kB, a, b, add);
}

}  // namespace assay::device::fp8_block
