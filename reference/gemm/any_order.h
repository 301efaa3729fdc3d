#pragma once
// The arithmetic of a product whose accumulation plan is unknown: the numbers that error_bound.h needs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"

namespace assay {

// One arithmetic, in any order. The defaults hold for every unit of the tensor-core table that accumulates in f32.
struct AnyOrder {
  int fraction_bits = 13;       // F, at least
  int step_fraction_bits = 13;  // P, at least
  bool step_nearest = false;
  int step_exponent_min = -126;
  int step_exponent_max = 127;
  int zero_floor = -126;                 // at most
  std::int64_t products_per_step = 1;    // at least
  std::int64_t short_steps = 0;          // steps of a block that take fewer products than that
  std::int64_t short_step_interval = 0;  // one more short step for each such number of products of a block; 0: none
  std::int64_t output_merges = 0;        // roundings of partial sums to the type of D
};

// For a known unit whose order, slices, promotion and scale association are unknown. Errors: NotSupported for a unit that
// takes subnormal operands for zeros.
AnyOrder any_order(const TensorCoreUnit& unit);

// Whether instructions of this unit can multiply operands of these types as the kind says. FP8 values are f16 and bf16
// values too, so a 16-bit unit takes the FP8 kinds without block scales.
bool takes(const TensorCoreUnit& unit, GemmKind kind, Format rows, Format columns);

// Every arithmetic that a backend may use when it states none. One represents all units that keep an f32 sum, of any
// architecture, with the weakest value of each member; one represents additions to an f32 sum, to nearest, one product
// at a time; and, where a unit of this architecture keeps an FP22 sum of these types, one represents the FP22 units. Sums
// in f16, and those of units that are not fused, are not included: a backend that keeps them must state the unit; nor are
// units of other architectures that keep fewer than 24 fraction bits in f32, or 13 in FP22. A promotion interval or slice of
// K may end inside a step once in 128 products.
std::vector<AnyOrder> legal_arithmetic(GemmKind kind, Format rows, Format columns, std::string_view architecture);

}  // namespace assay
