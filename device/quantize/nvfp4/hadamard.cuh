#pragma once
// NVFP4, the random Hadamard transform of the 16 rows of a warp's square, on registers and in place: by matrix
// instructions where their sums are those of hadamard.h, elsewhere by integers and shuffles.

#include <cstdint>

#include "device/quantize/nvfp4/hadamard_terms.cuh"
#include "device/quantize/nvfp4/load_patch.cuh"
#include "device/quantize/nvfp4/thread_layout.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

// Matrix instructions whose one step is 16 products cut at 25 fraction bits (spec tensor-core-2.1): Hopper and the Blackwell
// of SM100. Elsewhere integers do the same.
#if __CUDA_ARCH__ == 900 || (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1100)
#define ASSAY_NVFP4_MMA 1
#else
#define ASSAY_NVFP4_MMA 0
#endif

#if ASSAY_NVFP4_MMA

// The operand of factors: of outputs j = 4 (g / 2) + g % 2 and 2 more, rows 4q ... 4q + 3.
struct Factors {
  std::uint32_t first[2], second[2];

  __device__ Factors(std::uint32_t sign_mask, const Lane& lane) {
    const auto factor = [&](int i, int j) {
      const bool negative = (__popc(i & j) + (sign_mask >> i & 1)) % 2 != 0;
      return negative ? 0xBE80u : 0x3E80u;  // -1/4, 1/4
    };
    const int j = 4 * (lane.g / 2) + lane.g % 2;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int i = 4 * lane.q + 2 * k;
      first[k] = factor(i, j) | factor(i + 1, j) << 16;
      second[k] = factor(i, j + 2) | factor(i + 1, j + 2) << 16;
    }
  }
};

__device__ __forceinline__ void multiply_step(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
__device__ __forceinline__ std::uint32_t round_pair(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// y in the place of x: the same rows and columns of it. Operand A is x transposed: its row g is column 2k of lane
// group g, its row g + 8 is column 2k + 1; its columns, over which the step sums, are rows of x in the order 0 1 4 5 8
// 9 12 13 2 3 6 7 ..., the same as of the factors.
__device__ __forceinline__ void transform(Patch<Format::bf16>& patch, const Factors& factors) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t a[4] = {
        __byte_perm(patch.word[0][k], patch.word[1][k], 0x5410), __byte_perm(patch.word[0][k], patch.word[1][k], 0x7632),
        __byte_perm(patch.word[2][k], patch.word[3][k], 0x5410), __byte_perm(patch.word[2][k], patch.word[3][k], 0x7632)};
    float first[4], second[4];
    multiply_step(first, a, factors.first);
    multiply_step(second, a, factors.second);
    patch.word[0][k] = round_pair(first[0], first[2]);
    patch.word[1][k] = round_pair(first[1], first[3]);
    patch.word[2][k] = round_pair(second[0], second[2]);
    patch.word[3][k] = round_pair(second[1], second[3]);
  }
}

#else

struct Factors {
  std::uint32_t signs;  // of the lane's 4 rows
  int q;
  __device__ Factors(std::uint32_t sign_mask, const Lane& lane) : signs(sign_mask >> (4 * lane.q) & 0xF), q(lane.q) {}
};

__device__ __forceinline__ void transform(Patch<Format::bf16>& patch, const Factors& factors) {
#pragma unroll
  for (int column = 0; column < 8; ++column) {
    const int half = 16 * (column % 2);
    std::uint32_t x[4], largest = 0, flags = 0;  // flags: how many infinities, and from bit 16 on how many NaNs
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = patch.word[i][column / 2] >> half & 0xFFFFu;
      largest = max(largest, term_exponent(x[i]));
      flags += is_nan_term(x[i]) ? 1u << 16 : is_special(x[i]) ? 1u : 0u;
    }
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, step));
      flags += __shfl_xor_sync(kAllLanes, flags, step);
    }
    std::int32_t t[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      t[i] = flags != 0 ? special_term(x[i]) : term(x[i], largest);
      if (factors.signs >> i & 1) t[i] = -t[i];
    }
    const auto butterfly = [&](int a, int b) {
      const std::int32_t sum = t[a] + t[b], difference = t[a] - t[b];
      t[a] = sum, t[b] = difference;
    };
    butterfly(0, 1), butterfly(2, 3), butterfly(0, 2), butterfly(1, 3);
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int32_t other = __shfl_xor_sync(kAllLanes, t[i], step);
        t[i] = factors.q & step ? other - t[i] : other + t[i];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t y = flags != 0 ? finish_special_sum(t[i], static_cast<std::int32_t>(flags & 0xFFFFu), flags >> 16 != 0)
                                         : finish_sum(t[i], largest);
      patch.word[i][column / 2] = (patch.word[i][column / 2] & ~(0xFFFFu << half)) | y << half;
    }
  }
}

#endif

// Sums without a row enter no amax and are not stored.
__device__ __forceinline__ void drop_rows(Patch<Format::bf16>& patch, int rows_inside) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) patch.word[i][w] = i < rows_inside ? patch.word[i][w] : 0;
  }
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
