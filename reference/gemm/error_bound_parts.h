#pragma once
// Internal to error_bound.h: the sum of one element's products before the epilogue, and the epilogue.

#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/gemm/error_bound.h"
#include "reference/gemm/problem.h"

namespace assay::bounds {

constexpr double kU = 0x1p-24;  // f32, to nearest
constexpr double kUnderflow = 0x1p-149;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The sum of an element's products, including the scales that enter within the sum.
struct Sum {
  double exact = 0;         // infinite or NaN where every order gives that
  double error = 0;         // bound of the error of the computed value; infinite where there is none
  double largest = 0;       // no intermediate value is larger
  double unit = kInfinite;  // every value on the way is a multiple of it, where `lossless`; infinite where all are zero
  bool lossless = true;     // no operation loses anything: error is 0
  bool is_nan = false;      // one of the scales, or their product, is NaN
};

struct OutputType {
  int fraction;  // explicit bits of the significand
  int exponent_min;
  double unit;      // of rounding to nearest
  double smallest;  // subnormal
  double largest;   // finite
};
OutputType output_of(Format type);

// (1 + rate)^count - 1, from above.
inline double growth(double rate, double count) { return std::expm1(count * rate) * (1 + 0x1p-40); }

// The largest power of two that divides x; infinite for 0. x is finite.
double lowest_bit(double x);

// The bound of element `at` of the group's D.
CertifiedBound element_bound(const GroupedGemmView& view, const GroupView& group, const Sum& sum, std::int64_t at);

}  // namespace assay::bounds
