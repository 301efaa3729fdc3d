#pragma once
// What follows the accumulation (plan.h, GemmEpilogue), a run of elements at a time:
//
//   beta == 0, factor == 1:  D = RN(acc)                                an acc of -0 stays -0
//   beta == 0:               D = RN(FMA(acc, factor, +0))               a product of -0 becomes +0
//   otherwise:               D = RN(FMA(acc, factor, RN(beta * C)))     factor: alpha and what scales the whole sum
//   added onto C in memory:  D = RN(C + RN(acc * factor))               the product as in the first two lines
//   bias:                    D = RN(D + bias)                           on the rounded D (spec grouped-gemm-2.4)
//
// every RN but the last of a line being to f32, and that to the type of D. A NaN is stored as 0x7FFFFFFF (0x7FFF).

#include <cstdint>

#include "reference/gemm/plan.h"
#include "reference/types/format.h"

namespace assay::gemm {

struct Epilogue {
  Format d_type = Format::f32;
  float factor = 1;
  float beta = 0;             // 0: C is not read
  bool reduces = false;       // added onto C in memory, f32: D = RN(C + RN(acc * factor)), beta is 1
  bool flushes = false;       // ... a subnormal C, addend or sum being taken as 0
  bool adds_nothing = false;  // ... without products: D = C
};

// Elements [at, at + count) of d from acc. `c` is read there too unless beta is 0; `bias`, where not null, is read from
// its start.
void store(const Epilogue& epilogue, const float* acc, const void* c, const void* bias, void* d, std::int64_t at,
           std::int64_t count);

// values[i] times the scale of their row and of each column, in the order that the plan says, and with its subnormals.
void apply_scales(ScaleVectors order, Subnormals subnormals, float row_scale, const float* column_scale, float* values,
                  std::int64_t count);

// values[i] = RN(values[i]) to `type`, as f32: how a slice's sum is kept by SliceMerge::sequential_output.
void round_to(Format type, float* values, std::int64_t count);

}  // namespace assay::gemm
