#pragma once
// A certified bound for hardware whose accumulation plan is not known: an interval that holds every element of D, whatever
// the order in which fused steps and f32 operations combined the products.
//
// Model. The products of one element are cut into blocks: 128 of K for kind `block` (its f32 scales multiply from outside),
// else all of K, e8m0 and e4m3 block scales being part of the product. Within a block of n products p_k:
//   - at most T = ceil(n / products_per_step) + short_steps fused steps. Each takes any products not used yet and any values
//     computed before, cuts every one of them toward zero to F = `fraction_bits` below the largest exponent, adds exactly
//     and rounds once to `step_fraction_bits` = P fraction bits, toward zero or (step_nearest) to nearest;
//   - at most T f32 additions, to nearest, of values computed before.
// The values that leave the blocks are multiplied by their scales in f32 in either association, with or without FMA, and
// added by f32 additions in any order, with `output_merges` roundings of partial sums to the type of D among them; then the
// epilogue of plan.h in any association, one rounding to the type of D, and the bias.
//
// Theorem. With u = 2^-24, S = sum |p_k|, w_k = 2^(encoded exponent of p_k) over the non-zero products,
// r = 2^-P (2^-(P+1) to nearest) and emin the exponent of the smallest normal of the step's output, let
//
//   M = S (1 + u)^T (1 + r)^T                                       every value in the block is at most M:
//                                                                  cuts and truncation shrink, the rest grow by 1 + u or 1 + r
//   G = 2^-F max(max_k w_k, M, 2^emin, 2^zero_floor)               no cut loses more: the largest exponent of a step is
//                                                                  that of a product, of a value of at most M, or a floor
//   E = sum_k min(|p_k|, G)                                        each product is cut once, and a cut loses at most all
//     + 2 T G                                                      each value is consumed, hence cut, at most once
//     + T (r M + 2^(emin - P))                                     rounding of the steps, gradual underflow included
//     + T u M                                                      f32 additions (exact where they underflow)
//
// Then the values that leave the block sum to sum_k p_k with an error of at most E. Proof: write each operation as its exact
// result plus a local error; sums have gain 1, so the error of the whole is the sum of the local errors, each bounded above.
// Outside, with s the exact product of the block's scales, a value t costs at most |s t| ((1 + u)^3 - 1) plus 2^-149 (1 + |s_r|
// + |s_c| + |t|) by scaling; every addition costs u times the magnitude of all, every merge the same with D's unit. The epilogue
// multiplies by factors in at most five roundings, each of which may also underflow. All of it is summed in double with every term positive; the last step widens
// the radius by more than double rounding can have taken from it.
//
// Where an operand or scale is not finite, or a magnitude could pass the largest finite value on the way, no bound is given:
// the radius is infinite.

#include <cstdint>
#include <vector>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay {

// What is known of the hardware. The defaults hold for every unit of the tensor-core table that accumulates in f32.
struct AnyOrder {
  int fraction_bits = 13;             // F, at least
  int step_fraction_bits = 13;        // P, at least
  bool step_nearest = false;
  int step_exponent_min = -126;
  int step_exponent_max = 127;
  int zero_floor = -126;              // at most
  std::int64_t products_per_step = 1; // at least
  std::int64_t short_steps = 0;       // steps of a block that take fewer products than that
  std::int64_t output_merges = 0;
};

// What is known when the unit is, but neither the order nor the slices, promotion and scale association.
AnyOrder any_order(const TensorCoreUnit& unit);

// D lies in [exact - radius, exact + radius]; `exact` is the exact result, to within a part of the radius.
struct CertifiedBound {
  double exact = 0;
  double radius = 0;

  bool contains(double value) const;  // false for NaN, unless the radius is infinite
};

// One bound an element of D, row-major, for the whole problem (its plan plays no part, but must exist). Elements that the
// problem does not write have an infinite radius. Errors: those of grouped_gemm(); a member of `hardware` that is negative
// where it counts, products_per_step below 1, or F or P outside [1, 60].
std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, const AnyOrder& hardware = {});

}  // namespace assay
