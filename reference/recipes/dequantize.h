#pragma once
// From codes and scales back to values, for every recipe (spec per-tensor-1.6, mxfp8-3.1, nvfp4-6.1). Always row-major [rows,
// columns], also from columnwise data, whose transposition (per group) is undone.
//
//   per-tensor, block   y = round(fl(float(code) * scale_inv))
//   mxfp8               y = round(fl(float(code) * 2^(E - 127)))                       see mxfp8.h
//   nvfp4               y = round(fl(float(code) * fl(fl(float(d8) * amax) * factor)))  see nvfp4.h
//
// fl rounds to f32 and round() to the output type, both to nearest even. A NaN result is stored as 0x7FFFFFFF in f32
// and 0x7FFF in bf16 and f16.

#include <cstdint>
#include <span>

#include "reference/layout/scale_shape.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay {

struct DequantizeProblem {
  Recipe recipe = Recipe::tensor_current;
  Format data_type = Format::e4m3;                  // e4m3 or e5m2; nvfp4: e2m1
  Format output_type = Format::f32;                 // bf16, f16 or f32
  Direction direction = Direction::rowwise;         // which pair of data and scales is read
  ScaleLayout scale_layout = ScaleLayout::compact;  // swizzled: mxfp8 and nvfp4
  std::int64_t rows = 0;                            // of the matrix that was quantized, in either direction
  std::int64_t columns = 0;
  bool grouped = false;                  // false: one tensor of all rows, `splits` is not read
  std::span<const std::int64_t> splits;  // [G] rows of each group; rows beyond their sum are not written
  const void* data = nullptr;            // as quantize stores it for this direction
  const void* scale_inv = nullptr;       // as quantize stores it; per-tensor recipes: f32 [G] (or [1])
  const float* amax = nullptr;           // [G] (or [1]): nvfp4, the amax that this direction was quantized with
  float nvfp4_e4m3_max = 448;            // nvfp4: 448, or 256 after 4over6
};

// Writes `output` [rows, columns] in `output_type`. Errors (InvalidArgument, before anything is written): null or
// misaligned pointers where there are elements, negative sizes or splits, splits that sum to more than `rows`, a type
// or a scale layout that the recipe does not have, an odd extent along which nvfp4 codes are packed, sizes past int64.
void dequantize(const DequantizeProblem& problem, void* output);

namespace scalar {
// The same call in plain code.
void dequantize(const DequantizeProblem& problem, void* output);
}  // namespace scalar

}  // namespace assay
