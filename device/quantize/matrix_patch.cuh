#pragma once
// The elements of a matrix that a thread holds in registers: some rows of 8 columns, read by vectors where the columns
// allow it; and the FP8 codes of such a row.

#include <cstdint>

#include "device/formats/convert.cuh"

#if defined(__CUDACC__)

namespace assay::device {

// Row i is word[i][...].
template <Format X, int kRows>
struct MatrixPatch {
  static constexpr int kWords = 8 / Element<X>::kPerWord;
  std::uint32_t word[kRows][kWords];

  __device__ __forceinline__ float value(int row, int column) const {
    return Element<X>::widen(word[row][column / Element<X>::kPerWord], column % Element<X>::kPerWord);
  }
};

// `x` is the patch's first element, `columns` the distance between rows; rows and columns of the patch that lie
// inside.
template <Format X, bool kAligned, int kRows>
__device__ __forceinline__ void load_patch(MatrixPatch<X, kRows>& patch, const void* x, std::int64_t columns, int rows_inside,
                                           int columns_inside) {
  constexpr int kBytes = Element<X>::kBytes, kWords = MatrixPatch<X, kRows>::kWords;
  const auto* row = static_cast<const unsigned char*>(x);
#pragma unroll
  for (int i = 0; i < kRows; ++i, row += columns * kBytes) {
    const bool inside = i < rows_inside;
    if constexpr (kAligned) {  // the columns are a multiple of 8: all inside or none
      const bool present = inside && columns_inside > 0;
#pragma unroll
      for (int v = 0; v < kWords / 4; ++v) {
        const uint4 vector = present ? reinterpret_cast<const uint4*>(row)[v] : uint4{0, 0, 0, 0};
        patch.word[i][4 * v] = vector.x;
        patch.word[i][4 * v + 1] = vector.y;
        patch.word[i][4 * v + 2] = vector.z;
        patch.word[i][4 * v + 3] = vector.w;
      }
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w) patch.word[i][w] = 0;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (!inside || c >= columns_inside) continue;
        if constexpr (kBytes == 4) {
          patch.word[i][c] = reinterpret_cast<const unsigned int*>(row)[c];
        } else {
          const std::uint32_t code = reinterpret_cast<const unsigned short*>(row)[c];
          patch.word[i][c / 2] |= code << (16 * (c % 2));
        }
      }
    }
  }
}

// The FP8 codes of 8 elements of 16 bits, all by one multiplier; `zero` as multiply_with_zero() takes it.
template <Format X, Format F>
__device__ __forceinline__ uint2 codes_of_eight(const uint4& word, float multiplier, float zero) {
  float product[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const std::uint32_t w = c < 2 ? word.x : c < 4 ? word.y : c < 6 ? word.z : word.w;
    product[c] = multiply_with_zero(Element<X>::widen(w, c % 2), multiplier, zero);
  }
  return {encode_fp8x4<F>(product[0], product[1], product[2], product[3]),
          encode_fp8x4<F>(product[4], product[5], product[6], product[7])};
}

}  // namespace assay::device

#endif  // __CUDACC__
