#pragma once
// A certified bound for hardware whose accumulation plan is not known (spec exactness-1.3): an interval that holds every element
// of D, for any order in which fused steps and f32 operations combined the products.
//
// Model. The products of one element are cut into blocks: 128 of K for kind `block` (its f32 scales multiply from outside),
// else all of K, e8m0 and e4m3 block scales being part of the product. Within a block of n products p_k:
//   - at most T fused steps: ceil(n / products_per_step) and the short ones. Each takes any products not used yet and any
//     values computed before, cuts every one of them toward zero to F = `fraction_bits` below the largest exponent, adds
//     exactly and rounds once to `step_fraction_bits` = P fraction bits, toward zero or (step_nearest) to nearest;
//   - at most T f32 additions, to nearest, of values computed before.
// The values that leave the blocks are multiplied by their scales in f32 in either association, with or without FMA, and
// added by f32 additions in any order, with `output_merges` roundings of partial sums to the type of D among them; then the
// epilogue of plan.h in any association, one rounding to the type of D (from f32 or at once), and the bias.
//
// Theorem. With u = 2^-24, S+ and S- the sums of the positive and of the negative p_k, w_k = 2^(encoded exponent of p_k) over
// the non-zero products, r = 2^-P (2^-(P+1) to nearest), emin the exponent of the smallest normal of the step's output and
// [x] the largest power of two that is at most x, let
//
//   M = max(S+, -S-) (1 + u)^T (1 + r)^T                            every value in the block is at most M: one that combines
//                                                                  products of a set Q lies between the sums of the negative
//                                                                  and of the positive products of Q, an interval that holds 0,
//                                                                  so that cuts and truncation stay in it; the rest grow by
//                                                                  1 + u or 1 + r (truncation: 1)
//   G = 2^-F max(max_k w_k, [M], 2^emin, 2^zero_floor)             no cut loses more: the largest exponent of a step is
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
// multiplies by factors in at most five roundings, each of which may also underflow. All of it is summed in double with every
// term positive; the radius is widened by more than double rounding can have taken from it. Rounding is monotonic, so D lies
// between what the ends of the interval are rounded to.
//
// Exact sums. Where all p_k are multiples of a power of two d with max(S+, -S-) < 2^(P+1) d and G <= d, every value is a
// multiple of d that P fraction bits hold, no cut and no rounding loses anything, and E = 0. The same argument with 24 bits
// serves scales, their sum, and the epilogue. What is exact to the end has one right value: lowest == highest.
//
// Where an operand is not finite, the result is NaN or an infinity in every order, if that can be shown; where a magnitude
// could pass the largest finite value on the way in some orders only, no bound is given.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reference/gemm/any_order.h"
#include "reference/gemm/grouped_gemm.h"

namespace assay {

// D lies in [lowest, highest], both values of the type of D; both are NaN where D must be NaN.
struct CertifiedBound {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double exact = 0;           // the result without any rounding, to within a fraction of the radius
  double radius = kInfinite;  // error bound before the final rounding to the type of D; infinite if the result is not finite
  double lowest = -kInfinite, highest = kInfinite;

  bool is_bounded() const { return !(lowest == -kInfinite && highest == kInfinite); }
  // One value alone is right; a zero may have either sign.
  bool is_exact() const { return lowest == highest || lowest != lowest; }
  bool contains(double value) const;
};

// One bound per element of D, row-major, for the whole problem (its plan is not used, but must exist). It holds for every
// entry of `hardware`. Elements that the problem does not write have no bound. Errors: those of grouped_gemm(); an empty
// `hardware`; a negative count, products_per_step below 1, or F or P outside [1, 60].
std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, std::span<const AnyOrder> hardware);
std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, const AnyOrder& hardware = {});

}  // namespace assay
