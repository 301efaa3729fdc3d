#pragma once
// bf16 matrix instructions of a warp, D += A * B with f32 D. The fast kernels use them where their sums are exact, or
// where only the size of a sum matters, so that no rounding of an architecture enters a result.
//
//   lane 4 * g + q holds   d[0], d[1]: row g, columns 2q and 2q + 1; d[2], d[3]: row g + 8, the same columns
//                          a, b: pairs along k from 2q; of 16 k, from 2q + 8 too. a: rows g, g + 8; b: column g

#include <cstdint>

namespace assay::device::emulated {

// 16 x 8 of D, 16 products each.
__device__ inline void multiply_k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 8 products each.
__device__ inline void multiply_k8(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

}  // namespace assay::device::emulated
