// Layer (a) of formulas: one value at a time.

#include <array>
#include <bit>
#include <cmath>

#include "reference/approximations/approximations.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/f16.h"
#include "reference/rules/formula.h"

namespace assay::scalar {
namespace {

// a with n mantissa bits; halves go away from zero. Infinity and NaN stay.
float round_mantissa(float a, float n) {
  if (!std::isfinite(a) || !(n >= 0 && n <= 22)) return a;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(a);
  const std::uint32_t step = 1u << (23 - static_cast<int>(n));
  return std::bit_cast<float>((bits + step / 2) & ~(step - 1));
}

// 2^n for n = up or down of RN(log2 a).
float power_of_log2(float a, float (*to_whole)(float)) {
  const float whole = to_whole(static_cast<float>(std::log2(static_cast<double>(a))));
  return std::isfinite(whole) ? std::ldexp(1.0f, static_cast<int>(whole)) : whole < 0 ? 0.0f : whole;
}

}  // namespace

float call(FormulaFunction function, float a, float b, float c) {
  switch (function) {
    case FormulaFunction::maximum: return std::isnan(a) ? b : std::isnan(b) ? a : a < b ? b : a;
    case FormulaFunction::minimum: return std::isnan(a) ? b : std::isnan(b) ? a : b < a ? b : a;
    case FormulaFunction::maximum_or_nan: return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
    case FormulaFunction::minimum_or_nan: return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
    case FormulaFunction::absolute: return std::fabs(a);
    case FormulaFunction::fused: return std::fma(a, b, c);
    case FormulaFunction::power_up: return decode_e8m0(encode_e8m0(a));
    case FormulaFunction::power_down: {
      if (std::isnan(a)) return a;
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) & 0xFF80'0000);
    }
    case FormulaFunction::power_up_log2: return power_of_log2(a, [](float value) { return std::ceil(value); });
    case FormulaFunction::power_down_log2: return power_of_log2(a, [](float value) { return std::floor(value); });
    case FormulaFunction::round_half_up: return round_mantissa(a, b);
    case FormulaFunction::to_bf16: return decode_bf16(encode_bf16(a));
    case FormulaFunction::to_f16: return decode_f16(encode_f16(a));
    case FormulaFunction::to_e4m3: return decode_e4m3(encode_e4m3(a));
    case FormulaFunction::to_e5m2: return decode_e5m2(encode_e5m2(a));
    case FormulaFunction::flush: return flush_subnormal(a);
    case FormulaFunction::rcp_approx_ftz: return rcp_approx_ftz(a);
    case FormulaFunction::rcp_approx: return rcp_approx(a);
    case FormulaFunction::ex2_approx_ftz: return ex2_approx_ftz(a);
    case FormulaFunction::ex2_approx: return ex2_approx(a);
    case FormulaFunction::rsqrt_approx_ftz: return rsqrt_approx_ftz(a);
    case FormulaFunction::rsqrt_approx: return rsqrt_approx(a);
    case FormulaFunction::tanh_approx: return tanh_approx(a);
    case FormulaFunction::div_full: return div_full(a, b);
    case FormulaFunction::div_approx_ftz: return div_approx_ftz(a, b);
    case FormulaFunction::cuda_expf: return cuda_expf(a);
  }
  return a;
}

float evaluate(std::span<const FormulaStep> steps, std::span<const float> variables) {
  std::array<float, 33> stack = {};
  std::size_t height = 0;
  for (const FormulaStep& step : steps) {
    const int taken = taken_by(step);
    height -= static_cast<std::size_t>(taken);
    const float a = stack[height], b = stack[height + (taken > 1 ? 1 : 0)], c = stack[height + (taken > 2 ? 2 : 0)];
    float value = 0;
    switch (step.op) {
      case FormulaOp::constant: value = step.value; break;
      case FormulaOp::variable: value = variables[step.index]; break;
      case FormulaOp::negate: value = -a; break;
      case FormulaOp::add: value = a + b; break;
      case FormulaOp::subtract: value = a - b; break;
      case FormulaOp::multiply: value = a * b; break;
      case FormulaOp::divide: value = a / b; break;
      case FormulaOp::less: value = a < b ? 1 : 0; break;
      case FormulaOp::less_equal: value = a <= b ? 1 : 0; break;
      case FormulaOp::equal: value = a == b ? 1 : 0; break;
      case FormulaOp::not_equal: value = a != b ? 1 : 0; break;
      case FormulaOp::select: value = a != 0 ? b : c; break;
      case FormulaOp::call: value = call(static_cast<FormulaFunction>(step.index), a, b, c); break;
    }
    stack[height++] = value;
  }
  return stack[0];
}

}  // namespace assay::scalar
