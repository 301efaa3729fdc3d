#pragma once
// The gradient of a bias: the sum of each column over the rows of each group, in an order that is part of the contract
// (spec dbias-1.1). All sums are f32. Tiles of 128 rows are counted from the group's first row; each is two halves of
// 64 rows, of which the last of a group may be short or without rows:
//
//   half(h) = 0 + x[first row] + x[next row] + ...     one row after the other
//   tile    = half(0) + half(1)                        a half without rows is 0
//   dbias   = 0 + tile(0) + tile(1) + ...              one tile after the other, then rounded to the output type (spec dbias-1.2)
//
// A group without rows gives 0. A sum that is NaN is stored as 0x7FFFFFFF in f32 and as 0x7FFF in bf16 and f16, so that
// no payload depends on the machine.

#include <cstdint>
#include <span>

#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay {

struct DbiasProblem {
  Format x_type = Format::bf16;  // bf16, f16 or f32
  const void* x = nullptr;       // [rows, columns]
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool grouped = true;                   // false: one group of all rows, `splits` is not read
  std::span<const std::int64_t> splits;  // [G]; rows beyond their sum are not read
  Format output_type = Format::f32;      // f32, bf16 or f16
};

// Writes `dbias` [G, columns] in `output_type`. Errors (InvalidArgument, before anything is written): null or
// misaligned pointers where there are elements, negative sizes or splits, splits that sum to more than `rows`, other
// types, sizes past int64.
void grouped_dbias(const DbiasProblem& problem, void* dbias);

// The same for the x of a quantization, in the type of x, after its checks.
void quantize_dbias(const QuantizeProblem& problem, void* dbias);

// The checks that grouped_dbias makes.
void check_dbias(const DbiasProblem& problem, const void* dbias);

namespace scalar {
void grouped_dbias(const DbiasProblem& problem, void* dbias);
void quantize_dbias(const QuantizeProblem& problem, void* dbias);
}  // namespace scalar

}  // namespace assay
