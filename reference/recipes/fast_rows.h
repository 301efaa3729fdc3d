#pragma once
// Rows of a matrix in and out of f32, for the fast layer of the block-scaled recipes: loops to be inlined into cloned
// functions (reference/support/simd.h).

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reference/formats/fast_codes.h"
#include "reference/recipes/quantize.h"
#include "reference/support/simd.h"
#include "reference/types/format.h"

namespace assay::fast {

// x[0..width) = elements first, first + 1, ... of `matrix`, as many as `count`, then zeros. `zero_sign` positive makes
// every -0 a +0.
ASSAY_INLINE void load_row(Format type, const void* matrix, std::int64_t first, int count, int width, ZeroSign zero_sign,
                           float* __restrict x) {
  if (type == Format::f32) {
    const float* from = static_cast<const float*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = from[i];
  } else if (type == Format::bf16) {
    const std::uint16_t* from = static_cast<const std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = widen_bf16(from[i]);
  } else {
    const std::uint16_t* from = static_cast<const std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) x[i] = widen_f16(from[i]);
  }
  for (int i = count; i < width; ++i) x[i] = 0;
  if (zero_sign == ZeroSign::positive) {
    for (int i = 0; i < count; ++i) x[i] = x[i] + 0.0f;
  }
}

// An integer that sorts as |x| does, with infinity the largest there is: NaN wraps to the negative ones, and a maximum that
// passes it over is a plain one.
constexpr std::int32_t kOrderOfZero = 0x7fff'ffff - 0x7f80'0000;

ASSAY_INLINE std::int32_t order_of(float x) {
  return static_cast<std::int32_t>((std::bit_cast<std::uint32_t>(x) & kMagnitude) + static_cast<std::uint32_t>(kOrderOfZero));
}

// The bits of |x| from its order, which is at least kOrderOfZero.
ASSAY_INLINE std::uint32_t bits_of_order(std::int32_t order) { return static_cast<std::uint32_t>(order - kOrderOfZero); }

// max |x| of each run of kBlock elements among kWidth, as bits; NaN counts as 0.
template <int kBlock, int kWidth>
ASSAY_INLINE void block_amaxes(const float* __restrict x, std::uint32_t* __restrict amax) {
  for (int block = 0; block < kWidth / kBlock; ++block) {
    std::int32_t largest[8];
    for (int i = 0; i < 8; ++i) largest[i] = kOrderOfZero;
    for (int first = 0; first < kBlock; first += 8) {
      for (int i = 0; i < 8; ++i) largest[i] = std::max(largest[i], order_of(x[block * kBlock + first + i]));
    }
    // Halves against each other, so that each step is a vector's.
    for (int i = 0; i < 4; ++i) largest[i] = std::max(largest[i], largest[i + 4]);
    for (int i = 0; i < 2; ++i) largest[i] = std::max(largest[i], largest[i + 2]);
    amax[block] = bits_of_order(std::max(largest[0], largest[1]));
  }
}

// The same down each of kWidth columns.
template <int kRows, int kWidth>
ASSAY_INLINE void column_amaxes(const float (&x)[kRows][kWidth], int rows, std::uint32_t* __restrict amax) {
  alignas(64) std::int32_t largest[kWidth];
  for (int column = 0; column < kWidth; ++column) largest[column] = kOrderOfZero;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < kWidth; ++column) largest[column] = std::max(largest[column], order_of(x[row][column]));
  }
  for (int column = 0; column < kWidth; ++column) amax[column] = bits_of_order(largest[column]);
}

// Prefetches `count` elements of a row. Rows of a matrix are too far apart for the processor's own prefetcher. The address
// may lie past the end: nothing is read.
ASSAY_INLINE void prefetch_row(Format type, const void* matrix, std::int64_t first, int count) {
  const int size = type == Format::f32 ? 4 : 2;
  const auto address = reinterpret_cast<std::uintptr_t>(matrix) + static_cast<std::uintptr_t>(first * size);
  for (int byte = 0; byte < count * size; byte += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(address + static_cast<std::uintptr_t>(byte)));
}

// The same for bytes to be written.
ASSAY_INLINE void prefetch_bytes(const std::uint8_t* bytes, std::int64_t first, int count) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes) + static_cast<std::uintptr_t>(first);
  for (int byte = 0; byte < count; byte += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(address + static_cast<std::uintptr_t>(byte)), 1);
}

// Rounds y to `type` and stores it as elements first, first + 1, ... A NaN becomes 0x7FFFFFFF or 0x7FFF.
ASSAY_INLINE void store_row(Format type, const float* __restrict y, int count, void* matrix, std::int64_t first) {
  if (type == Format::f32) {
    float* to = static_cast<float*>(matrix) + first;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(y[i]);
      to[i] = std::bit_cast<float>((bits & kMagnitude) > kInfinity ? 0x7fff'ffffu : bits);
    }
  } else if (type == Format::bf16) {
    std::uint16_t* to = static_cast<std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) to[i] = encode_bf16(y[i]);
  } else {
    std::uint16_t* to = static_cast<std::uint16_t*>(matrix) + first;
    for (int i = 0; i < count; ++i) to[i] = encode_f16(y[i]);
  }
}

}  // namespace assay::fast
