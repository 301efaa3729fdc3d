#include "reference/gemm/error_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/problem.h"
#include "reference/layout/sizes.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"

namespace assay {
namespace {

constexpr double kU = 0x1p-24;             // f32, to nearest
constexpr double kUnderflow = 0x1p-149;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// An element with the block scale that the hardware folds into the product (mxfp8, nvfp4).
struct Factor {
  double value = 0;      // exact: at most 12 significant bits
  double reference = 0;  // 2^(encoded exponent), 0 for a zero element
  bool finite = true;
};

double power(const Term& term) { return std::ldexp(1.0, term.exponent); }

double value_of(const Term& term) {
  const double magnitude = std::ldexp(static_cast<double>(term.significand), term.exponent - term.fraction);
  return term.negative ? -magnitude : magnitude;
}

Factor factor_at(const OperandView& operand, std::int64_t i, std::int64_t k) {
  const Term element = decode_term(operand.type, operand.element(i, k));
  Factor factor{value_of(element), element.significand == 0 ? 0 : power(element), element.kind == Term::Kind::finite};
  if (operand.scale.type == Format::e8m0 && operand.scale.data != nullptr) {
    const std::uint8_t code = operand.scale.code(i, k);
    factor.finite = factor.finite && code != 0xFF;
    factor.value = std::ldexp(factor.value, code - 127);
    factor.reference = std::ldexp(factor.reference, code - 127);
  } else if (operand.scale.type == Format::e4m3 && operand.scale.data != nullptr) {
    const Term scale = decode_term(Format::e4m3, operand.scale.code(i, k) & 0x7Fu);
    factor.finite = factor.finite && scale.kind == Term::Kind::finite;
    factor.value *= value_of(scale);
    factor.reference *= power(scale);
  }
  return factor;
}

std::vector<Factor> factors_of(const OperandView& operand) {
  std::vector<Factor> factors;
  factors.reserve(static_cast<std::size_t>(operand.extent * operand.depth));
  for (std::int64_t i = 0; i < operand.extent; ++i) {
    for (std::int64_t k = 0; k < operand.depth; ++k) factors.push_back(factor_at(operand, i, k));
  }
  return factors;
}

// (1 + rate)^count - 1, from above.
double growth(double rate, double count) { return std::expm1(count * rate) * (1 + 0x1p-40); }

// The products of one block: what the theorem bounds.
struct BlockBound {
  double sum = 0;        // of the exact products
  double magnitude = 0;  // S
  double computed = 0;   // M
  double error = 0;      // E
  double operations = 0; // T
};

BlockBound block_bound(const AnyOrder& hardware, const Factor* a, const Factor* b, std::int64_t count) {
  BlockBound block;
  double largest_reference = 0;
  bool finite = true;
  for (std::int64_t k = 0; k < count; ++k) {
    const double product = a[k].value * b[k].value;
    finite = finite && a[k].finite && b[k].finite;
    block.sum += product;
    block.magnitude += std::fabs(product);
    largest_reference = std::max(largest_reference, a[k].reference * b[k].reference);
  }
  const double steps = static_cast<double>(ceil_div(count, hardware.products_per_step) + hardware.short_steps);
  const double step_unit = std::ldexp(1.0, -hardware.step_fraction_bits - (hardware.step_nearest ? 1 : 0));
  const double smallest = std::ldexp(1.0, hardware.step_exponent_min);
  block.operations = steps;
  block.computed = block.magnitude * (1 + growth(kU, steps)) * (1 + (hardware.step_nearest ? growth(step_unit, steps) : 0));
  if (!finite || !(block.computed < std::ldexp(1.0, hardware.step_exponent_max))) {
    block.error = kInfinite;
    return block;
  }
  const double grid = std::ldexp(std::max({largest_reference, block.computed, smallest, std::ldexp(1.0, hardware.zero_floor)}),
                                 -hardware.fraction_bits);
  for (std::int64_t k = 0; k < count; ++k) block.error += std::min(std::fabs(a[k].value * b[k].value), grid);
  block.error += 2 * steps * grid;
  block.error += steps * (step_unit * block.computed + std::ldexp(smallest, -hardware.step_fraction_bits));
  block.error += steps * kU * block.computed;
  block.error += static_cast<double>(count + 2) * 0x1p-51 * block.magnitude;  // of `sum`, which double rounds
  return block;
}

// All blocks, scaled and added.
struct ProductBound {
  double exact = 0;
  double computed = 0;  // every partial sum is at most this
  double error = 0;
};

struct OutputType {
  double unit;      // of rounding to nearest
  double smallest;  // subnormal
  double largest;   // finite
};

OutputType output_of(Format type) {
  switch (type) {
    case Format::bf16: return {0x1p-8, 0x1p-133, 0x1.FEp127};
    case Format::f16: return {0x1p-11, 0x1p-24, 65504};
    default: return {kU, 0x1p-149, 0x1.FFFFFEp127};
  }
}

ProductBound product_bound(const GroupedGemmView& view, const AnyOrder& hardware, const GroupView& group, const Factor* a,
                           std::int64_t i, const Factor* b, std::int64_t j) {
  const bool scales_outside = view.kind == GemmKind::block;
  const std::int64_t length = scales_outside ? 128 : std::max<std::int64_t>(group.depth, 1);
  ProductBound total;
  double operations = 0;
  for (std::int64_t k = 0; k < group.depth; k += length) {
    BlockBound block = block_bound(hardware, a + k, b + k, std::min(length, group.depth - k));
    operations += block.operations;
    double s_rows = 1, s_columns = 1;
    if (scales_outside) {
      s_rows = group.rows.scale.value(i, k);
      s_columns = group.columns.scale.value(j, k);
    }
    const double s = s_rows * s_columns;
    total.exact += s * block.sum;
    total.computed += std::fabs(s) * block.computed * (1 + 4 * kU);
    total.error += std::fabs(s) * block.error;
    if (!scales_outside) continue;
    const double underflow = kUnderflow * (1 + std::fabs(s_rows) + std::fabs(s_columns) + block.computed);
    total.error += std::fabs(s) * block.computed * 4 * kU + block.operations * underflow;
    total.error += std::fabs(s * block.sum) * 0x1p-50;
    total.computed += block.operations * underflow;
    const bool safe = std::fabs(s) < 0x1p126 && std::fabs(s_rows) * block.computed < 0x1p126 &&
                      std::fabs(s_columns) * block.computed < 0x1p126;
    if (!safe) total.error = kInfinite;
  }
  const OutputType output = output_of(view.d_type);
  const double merges = static_cast<double>(hardware.output_merges);
  total.computed *= (1 + growth(kU, operations)) * (1 + growth(output.unit, merges));
  total.computed += (operations + merges) * (kUnderflow + output.smallest);
  total.error += operations * (kU * total.computed + kUnderflow) + merges * (output.unit * total.computed + output.smallest);
  const double limit = hardware.output_merges > 0 ? output.largest * 0.5 : 0x1p126;
  if (!(total.computed < limit)) total.error = kInfinite;
  return total;
}

double element_value(Format type, const void* base, std::int64_t at) {
  if (type == Format::f32) return static_cast<const float*>(base)[at];
  const std::uint16_t code = static_cast<const std::uint16_t*>(base)[at];
  return type == Format::bf16 ? scalar::decode_bf16(code) : scalar::decode_f16(code);
}

CertifiedBound round_to(const OutputType& output, double exact, double radius) {
  radius += output.unit * (std::fabs(exact) + radius) + output.smallest;
  if (!(std::fabs(exact) + radius < output.largest)) radius = kInfinite;
  return {exact, radius};
}

CertifiedBound element_bound(const GroupedGemmView& view, const GroupView& group, const ProductBound& product, std::int64_t at) {
  double factors[4] = {group.alpha, 1, 1, 1};
  if (view.kind == GemmKind::tensor) {
    if (group.rows.scale.data != nullptr) factors[1] = group.rows.scale.value(0, 0);
    if (group.columns.scale.data != nullptr) factors[2] = group.columns.scale.value(0, 0);
  } else if (view.kind == GemmKind::nvfp4) {
    factors[1] = group.columns.amax;
    factors[2] = group.rows.amax;
    factors[3] = 1.0 / 7225344.0;
  }
  double factor = 1, most = 1;  // no product of some of them is larger than `most`
  for (const double each : factors) {
    factor *= each;
    most *= std::max(1.0, std::fabs(each));
  }

  // Four factors and the sum: at most five roundings, one of them the constant's, whatever the association.
  const double magnitude = std::fabs(factor);
  double exact = product.exact * factor;
  double radius = product.error * magnitude + product.computed * magnitude * 8 * kU + 8 * kUnderflow * most * (1 + product.computed);
  if (group.depth == 0) exact = radius = 0;  // a finite factor leaves 0
  if (!(most * std::max(1.0, product.computed) < 0x1p120)) radius = kInfinite;

  if (group.beta != 0) {
    const double c = static_cast<double>(group.beta) * element_value(view.d_type, view.c, group.d_offset + at);
    exact += c;
    radius += 2 * kU * std::fabs(c) + 2 * kUnderflow;
    if (!(std::fabs(c) < 0x1p126)) radius = kInfinite;
  }
  radius += 0x1p-48 * std::fabs(exact);
  if (!(radius < kInfinite) || !(std::fabs(exact) < kInfinite)) return {exact, kInfinite};

  CertifiedBound bound = round_to(output_of(Format::f32), exact, radius);
  bound = round_to(output_of(view.d_type), bound.exact, bound.radius);
  if (group.bias != nullptr) {
    const double bias = element_value(view.d_type, group.bias, at % group.n);
    bound = round_to(output_of(Format::f32), bound.exact + bias, bound.radius + 0x1p-50 * std::fabs(bias));
    bound = round_to(output_of(view.d_type), bound.exact, bound.radius);
  }
  bound.radius *= 1 + 0x1p-20;
  if (!(bound.radius < kInfinite)) bound.radius = kInfinite;
  return bound;
}

void require_sound(const AnyOrder& hardware) {
  const auto bits = [](int value, std::string_view name) { require(value >= 1 && value <= 60, name, value, "1 to 60 bits"); };
  bits(hardware.fraction_bits, "hardware.fraction_bits");
  bits(hardware.step_fraction_bits, "hardware.step_fraction_bits");
  require(hardware.products_per_step >= 1, "hardware.products_per_step", hardware.products_per_step, "a value of at least 1");
  require(hardware.short_steps >= 0, "hardware.short_steps", hardware.short_steps, "a value of at least 0");
  require(hardware.output_merges >= 0, "hardware.output_merges", hardware.output_merges, "a value of at least 0");
  const bool exponents = hardware.step_exponent_min >= -1022 && hardware.step_exponent_min < hardware.step_exponent_max &&
                         hardware.step_exponent_max <= 127;
  require(exponents, "hardware.step_exponent_max", hardware.step_exponent_max, "above step_exponent_min and at most 127");
  require(hardware.zero_floor <= 127, "hardware.zero_floor", hardware.zero_floor, "an exponent of at most 127");
}

}  // namespace

AnyOrder any_order(const TensorCoreUnit& unit) {
  AnyOrder hardware;
  hardware.fraction_bits = unit.fraction_bits;
  hardware.zero_floor = unit.zero_floor;
  hardware.products_per_step = unit.products_per_step;
  // Two steps an instruction, and an addition: of f32 values, or of f16 values, whose rounding is that of one more step.
  const bool to_f16 = unit.accumulator == Accumulator::f16_nearest;
  if (unit.execution == Execution::emulated_fp8) hardware.products_per_step /= to_f16 ? 4 : 2;
  switch (unit.accumulator) {
    case Accumulator::f32_truncated: hardware.step_fraction_bits = 23; break;
    case Accumulator::e8m13_truncated: hardware.step_fraction_bits = 13; break;
    case Accumulator::f16_nearest:
      hardware.step_fraction_bits = 10;
      hardware.step_nearest = true;
      hardware.step_exponent_min = -14;
      hardware.step_exponent_max = 15;
      break;
  }
  return hardware;
}

bool CertifiedBound::contains(double value) const {
  return radius == kInfinite || (value >= exact - radius && value <= exact + radius);
}

std::vector<CertifiedBound> error_bounds(const GroupedGemmProblem& problem, const AnyOrder& hardware) {
  require_sound(hardware);
  const MatrixShape shape = grouped_gemm_shape(problem);
  const std::int64_t elements = checked_product(shape.rows, shape.columns, "rows", shape.rows);
  std::vector<CertifiedBound> bounds(static_cast<std::size_t>(elements), {0, kInfinite});
  const GroupedGemmView view = view_of(problem, bounds.data());
  for (const GroupView& group : view.groups) {
    const std::vector<Factor> rows = factors_of(group.rows);
    const std::vector<Factor> columns = factors_of(group.columns);
    parallel_for(group.m, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < group.n; ++j) {
          const ProductBound product = product_bound(view, hardware, group, rows.data() + i * group.depth, i,
                                                     columns.data() + j * group.depth, j);
          const std::int64_t at = i * group.n + j;
          bounds[static_cast<std::size_t>(group.d_offset + at)] = element_bound(view, group, product, at);
        }
      }
    });
  }
  return bounds;
}

}  // namespace assay
