#pragma once
// What is known of the arithmetic of a product when its accumulation plan is not: the numbers that error_bound.h needs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"

namespace assay {

// One arithmetic, in whatever order. The defaults hold for every unit of the tensor-core table that accumulates in f32.
struct AnyOrder {
  int fraction_bits = 13;             // F, at least
  int step_fraction_bits = 13;        // P, at least
  bool step_nearest = false;
  int step_exponent_min = -126;
  int step_exponent_max = 127;
  int zero_floor = -126;              // at most
  std::int64_t products_per_step = 1; // at least
  std::int64_t short_steps = 0;       // steps of a block that take fewer products than that
  std::int64_t stretch = 0;           // one more short step for each `stretch` products of a block; 0: none
  std::int64_t output_merges = 0;     // roundings of partial sums to the type of D
};

// What is known when the unit is, but neither the order nor the slices, promotion and scale association.
AnyOrder any_order(const TensorCoreUnit& unit);

// Whether instructions of this unit can multiply operands of these types as the kind says. FP8 values are f16 and bf16
// values too, so a 16-bit unit takes the FP8 kinds without block scales.
bool takes(const TensorCoreUnit& unit, GemmKind kind, Format rows, Format columns);

// Every arithmetic that may serve a product when nothing is stated. One stands for all units that keep an f32 sum, of
// whatever architecture, with the weakest of each of their numbers; one for additions to an f32 sum, to nearest, a product
// at a time; and, where a unit of this architecture keeps an FP22 sum of these types, one for the FP22 units. Sums in f16
// are not among them: a backend that makes them must state the unit. A stretch or slice of K may end inside a step once in
// 128 products.
std::vector<AnyOrder> legal_arithmetic(GemmKind kind, Format rows, Format columns, std::string_view architecture);

}  // namespace assay
