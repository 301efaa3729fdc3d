#pragma once
// D[64, N] (+)= A[64, 32] . B[N, 32]^T by one warpgroup: E4M3 or E5M2 in shared memory, f32 sums in registers. PTX ISA,
// "wgmma.mma_async", shape m64nNk32. Which thread holds which sum (thread = 32 w + 4 r + q of the warpgroup):
//
//                columns 8i + 0 1   2 3   4 5   6 7
//   row 16w + r          [q=0 ] [q=1] [q=2] [q=3]     sums[4i], sums[4i + 1]
//   row 16w + r + 8      [q=0 ] [q=1] [q=2] [q=3]     sums[4i + 2], sums[4i + 3]
//
// Internal to this folder.

#include <cstdint>

#include "reference/types/format.h"

namespace assay::device::fp8_block {

// Describes a matrix of rows of 128 bytes, 8 rows of which are the unit of the 128-byte swizzle; `address` in shared memory. PTX
// ISA, "matrix descriptor": the low word has address / 16 (and 1, unused with a swizzle), the high word the bytes from one unit to
// the next / 16 and the kind of swizzle. To move by a multiple of 16 bytes, add bytes / 16 to the low word.
__device__ inline std::uint32_t matrix_descriptor(std::uint32_t address) { return (1u << 16) | ((address & 0x3FFFF) >> 4); }
inline constexpr std::uint32_t kHighWord = (1024 / 16) | (1u << 30);

// The same of a matrix whose rows are the contraction (transposed), 64 columns of BF16 in 128 bytes; the next 64 columns are in the next
// 1024 bytes. The stride to the next 8 rows is 0: the same 8 rows serve twice.
__device__ inline std::uint32_t scale_descriptor(std::uint32_t address) {
  return (1024u / 16 << 16) | ((address & 0x3FFFF) >> 4);
}
inline constexpr std::uint32_t kScaleHighWord = 1u << 30;

// The next 32 bytes of each row.
inline constexpr std::uint32_t kNextK32 = 32 / 16;

#define ASSAY_8(i)                                                                                                          \
  "+f"(sums[(i)]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3]), "+f"(sums[(i) + 4]), "+f"(sums[(i) + 5]), \
      "+f"(sums[(i) + 6]), "+f"(sums[(i) + 7])
#define ASSAY_PRODUCT_96(k_and_types, transposed)                                                                            \
  asm volatile(                                                                                                              \
      "{\n .reg .pred add;\n .reg .b64 a, b;\n setp.ne.b32 add, %50, 0;\n mov.b64 a, {%48, %51};\n mov.b64 b, {%49, %51};\n" \
      " wgmma.mma_async.sync.aligned.m64n96" k_and_types                                                                     \
      " {"                                                                                                                   \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                               \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                     \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"                                       \
      "}, a, b, add, 1, 1" transposed ";\n}"                                                                                 \
      : ASSAY_8(0), ASSAY_8(8), ASSAY_8(16), ASSAY_8(24), ASSAY_8(32), ASSAY_8(40)                                           \
      : "r"(a), "r"(b), "r"(add), "n"(kHigh))
#define ASSAY_WGMMA_96(types) ASSAY_PRODUCT_96("k32.f32." types, "")
#define ASSAY_WGMMA_128(types)                                                                                               \
  asm volatile(                                                                                                              \
      "{\n .reg .pred add;\n .reg .b64 a, b;\n setp.ne.b32 add, %66, 0;\n mov.b64 a, {%64, %67};\n mov.b64 b, {%65, %67};\n" \
      " wgmma.mma_async.sync.aligned.m64n128k32.f32." types                                                                  \
      " {"                                                                                                                   \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                               \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                     \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                     \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"                                       \
      "}, a, b, add, 1, 1;\n}"                                                                                               \
      : ASSAY_8(0), ASSAY_8(8), ASSAY_8(16), ASSAY_8(24), ASSAY_8(32), ASSAY_8(40), ASSAY_8(48), ASSAY_8(56)                 \
      : "r"(a), "r"(b), "r"(add), "n"(kHigh))
#define ASSAY_WGMMA_192(types)                                                                                               \
  asm volatile(                                                                                                              \
      "{\n .reg .pred add;\n .reg .b64 a, b;\n setp.ne.b32 add, %98, 0;\n mov.b64 a, {%96, %99};\n mov.b64 b, {%97, %99};\n" \
      " wgmma.mma_async.sync.aligned.m64n192k32.f32." types                                                                  \
      " {"                                                                                                                   \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                               \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                     \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                     \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                                     \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                     \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"                                       \
      "}, a, b, add, 1, 1;\n}"                                                                                               \
      : ASSAY_8(0), ASSAY_8(8), ASSAY_8(16), ASSAY_8(24), ASSAY_8(32), ASSAY_8(40), ASSAY_8(48), ASSAY_8(56), ASSAY_8(64),   \
        ASSAY_8(72), ASSAY_8(80), ASSAY_8(88)                                                                                \
      : "r"(a), "r"(b), "r"(add), "n"(kHigh))

// `add` 0: the sums begin at 0. A and B are low words of matrix descriptors.
template <int kColumns, Format kA, Format kB>
__device__ inline void multiply(float (&sums)[kColumns / 2], std::uint32_t a, std::uint32_t b, int add) {
  static_assert(kColumns == 96 || kColumns == 128 || kColumns == 192);
  constexpr std::uint32_t kHigh = kHighWord;
  constexpr bool kA4 = kA == Format::e4m3, kB4 = kB == Format::e4m3;
#define ASSAY_OF_TYPES(columns)                                  \
  if constexpr (kA4 && kB4) ASSAY_WGMMA_##columns("e4m3.e4m3");  \
  if constexpr (kA4 && !kB4) ASSAY_WGMMA_##columns("e4m3.e5m2"); \
  if constexpr (!kA4 && kB4) ASSAY_WGMMA_##columns("e5m2.e4m3"); \
  if constexpr (!kA4 && !kB4) ASSAY_WGMMA_##columns("e5m2.e5m2")
  if constexpr (kColumns == 96) {
    ASSAY_OF_TYPES(96);
  } else if constexpr (kColumns == 128) {
    ASSAY_OF_TYPES(128);
  } else {
    ASSAY_OF_TYPES(192);
  }
#undef ASSAY_OF_TYPES
}

// products[64, 96] = A[16, 64]^T . B[16, 96] of BF16: scales, of which a row of 64 is a row of 128 bytes.
__device__ inline void multiply_scales(float (&sums)[48], std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t kHigh = kScaleHighWord;
  constexpr int add = 0;
  ASSAY_PRODUCT_96("k16.f32.bf16.bf16", ", 1, 1");
}

#undef ASSAY_PRODUCT_96
#undef ASSAY_WGMMA_96
#undef ASSAY_WGMMA_128
#undef ASSAY_WGMMA_192
#undef ASSAY_8

}  // namespace assay::device::fp8_block
