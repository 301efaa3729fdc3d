#pragma once
// Internal to nvfp4.h, layer (b): 16 rows by 128 columns quantized at a time. All rounding of the fast layer is here.

#include <bit>
#include <cfloat>
#include <cstdint>

#include "reference/recipes/quantize.h"
#include "reference/support/simd.h"

namespace assay::nvfp4 {

constexpr int kBlock = 16;
constexpr int kWidth = 128;
constexpr int kBlocks = kWidth / kBlock;

// A strip holds whole blocks of both directions: 8 blocks of each row, and one block of each column.
//
//               columns 0 .. 15   16 .. 31   ...   112 .. 127
//   row 0      | row block 0    | block 1  | ... | block 7   |    rowwise: a scale and 8 code bytes per block
//   ...        |    |           |          |     |           |    columnwise: a scale and 8 code bytes per column
//   row 15     |    v  column block                          |
struct Strip {
  alignas(64) float x[kBlock][kWidth];  // rows and columns that the matrix lacks are 0
  alignas(64) float y[kBlock][kWidth];  // the same after the Hadamard transform
  alignas(64) std::uint8_t codes[kBlock][kWidth];
  alignas(64) std::uint8_t random[kBlock][kWidth];
  alignas(64) std::uint16_t transformed[kBlock][kWidth];
  // Results.
  alignas(64) std::uint8_t row_bytes[kBlock][kWidth / 2];
  std::uint8_t row_scales[kBlock][kBlocks];
  alignas(64) std::uint64_t column_bytes[kWidth];  // 16 codes, the first row lowest
  alignas(64) std::uint8_t column_scales[kWidth];
};

// A minimum with FLT_MAX that also replaces NaN.
ASSAY_INLINE float at_most_max(float x) { return x < FLT_MAX ? x : FLT_MAX; }

// The value of a code, with selections between integers only: the compiler would not vectorise one between sums.
ASSAY_INLINE float e2m1_value(std::uint32_t code) {
  const std::uint32_t magnitude = code & 7, half = magnitude == 0 ? 0u : 0x3f00'0000u;
  const std::uint32_t bits = magnitude < 2 ? half : (magnitude << 22) + (126u << 23);
  return std::bit_cast<float>((code & 8) << 28 | bits);
}

// G and what follows from it.
struct TensorScaling {
  float amax, scale, sixth, inverse;

  TensorScaling(float tensor_amax, float e4m3_max) : amax(tensor_amax) {
    scale = at_most_max(6 * e4m3_max / tensor_amax);
    if (tensor_amax == 0 || scale == 0) scale = 1;
    sixth = scale * std::bit_cast<float>(0x3e2a'aaabu);
    inverse = 1 / scale;
  }
};

// Rows [0, rows) and columns [0, columns) of a strip from element `first` of x on; the others become 0.
void load_strip(Format type, const void* x, std::int64_t first, std::int64_t stride, int rows, int columns, ZeroSign zero_sign,
                float (&values)[kBlock][kWidth]);

// strip.x to row_scales and row_bytes. Uses strip.random with stochastic rounding.
void quantize_rows(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns, Strip& strip);

// strip.x, or strip.y with the Hadamard transform, to column_scales and column_bytes.
void quantize_columns(const QuantizeConfig& config, const TensorScaling& tensor, int rows, int columns, Strip& strip);

}  // namespace assay::nvfp4
