#pragma once
// Single elements of a product, computed as its view says or in another variant.

#include <cstdint>
#include <optional>

#include "reference/gemm/grouped_gemm.h"
#include "reference/gemm/problem.h"

namespace assay::conformance::diagnosis {

// Where an element of D lies.
struct Place {
  std::size_t group = 0;  // in the view
  std::int64_t i = 0, j = 0;
};
std::optional<Place> place_of(const GroupedGemmView& view, std::int64_t element);

// The inputs of the epilogue of one element.
struct Finish {
  Format type = Format::f32;
  float acc = 0, alpha = 1, factor = 1;  // factor: alpha with everything that multiplies the whole sum
  float s_rows = 1, s_columns = 1;       // per-tensor scales; 1 for other kinds
  bool reads_c = false, has_bias = false;
  float beta = 0, c = 0, bias = 0;
};
std::uint32_t code_of(Format type, float value);  // to nearest even; NaN canonical
float value_of_code(Format type, std::uint32_t code);
// D before the bias and its last rounding, as plan.h says.
float finished(const Finish& finish);

// How the products of one element are summed, in place of what the plan says.
enum class Summing {
  planned,
  f32_products_rounded,  // RN(sum + RN(a * b)), k upward
  f32_fma,               // FMA(a, b, sum)
  exact,                 // all of K, rounded once to f32
  dequantized_f32,       // operands times their scales in f32 first, then FMA
  dequantized_bf16,      // the same, rounded to bf16
  kept_in_bf16,          // rounded to bf16 after every `summing_step` products
  kept_in_f16,
};

// The whole tensor that an operand is part of: what may be read.
struct Extent {
  const void* data = nullptr;
  std::int64_t elements = 0;
};

Extent rows_of(const GroupedGemmProblem& problem);  // what supplies the rows of D
Extent columns_of(const GroupedGemmProblem& problem);

// A product with something changed. `view` points to `plan` and `unit`.
struct ProductVariant {
  ProductVariant(const GroupedGemmView& of, const Extent& rows, const Extent& columns);
  ProductVariant(const ProductVariant& other);
  ProductVariant& operator=(const ProductVariant&) = delete;

  GroupedGemmView view;
  AccumulationPlan plan;
  TensorCoreUnit unit;
  Summing summing = Summing::planned;
  std::int64_t summing_step = 1;
  std::uint32_t (*finish)(const Finish&) = nullptr;  // null: as plan.h says
  bool c_of_first_group = false;                     // C of every group is read where that of the first begins
  Extent rows, columns;

  // The products that the element is made of, at least 1.
  std::int64_t work(std::int64_t element) const;
  // Its bits; nothing outside the groups, or where that would read past an operand.
  std::optional<std::uint64_t> word(std::int64_t element) const;
};

}  // namespace assay::conformance::diagnosis
