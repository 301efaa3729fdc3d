#include "reference/gemm/any_order.h"

#include <algorithm>

namespace assay {
namespace {

constexpr std::int64_t kShortStepInterval = 128;  // K of the smallest tile; a slice consists of several

bool has(const TensorCoreUnit& unit, Format type) {
  return std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
}

bool is_fp8(Format type) { return type == Format::e4m3 || type == Format::e5m2; }

// Takes the weaker value of each member.
void widen(AnyOrder& weakest, const AnyOrder& other) {
  weakest.fraction_bits = std::min(weakest.fraction_bits, other.fraction_bits);
  weakest.step_fraction_bits = std::min(weakest.step_fraction_bits, other.step_fraction_bits);
  weakest.zero_floor = std::max(weakest.zero_floor, other.zero_floor);
  weakest.products_per_step = std::min(weakest.products_per_step, other.products_per_step);
}

}  // namespace

AnyOrder any_order(const TensorCoreUnit& unit) {
  AnyOrder hardware;
  hardware.fraction_bits = unit.fraction_bits;
  hardware.zero_floor = unit.zero_floor;
  hardware.products_per_step = unit.products_per_step;
  hardware.short_step_interval = kShortStepInterval;
  // Two steps per instruction, and an addition of f32 values, or of f16 values: that rounds as one more step does.
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

bool takes(const TensorCoreUnit& unit, GemmKind kind, Format rows, Format columns) {
  const StepScaling scaling = kind == GemmKind::mxfp8   ? StepScaling::e8m0_per_32
                              : kind == GemmKind::nvfp4 ? StepScaling::e4m3_per_16
                                                        : StepScaling::none;
  if (unit.scaling != scaling) return false;
  if (has(unit, rows) && has(unit, columns)) return true;
  const bool sixteen_bits = has(unit, Format::f16) && unit.execution == Execution::native;
  return sixteen_bits && is_fp8(rows) && is_fp8(columns);
}

std::vector<AnyOrder> legal_arithmetic(GemmKind kind, Format rows, Format columns, std::string_view architecture) {
  AnyOrder to_nearest;  // fused multiply-add, or multiplication (exact: at most 22 bits) and addition
  to_nearest.fraction_bits = 60;
  to_nearest.step_fraction_bits = 23;
  to_nearest.step_nearest = true;
  std::vector<AnyOrder> legal{to_nearest};

  AnyOrder f32, fp22;
  bool any_f32 = false, any_fp22 = false, here = false;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    if (!takes(unit, kind, rows, columns) || unit.accumulator == Accumulator::f16_nearest) continue;
    const bool narrow = unit.accumulator == Accumulator::e8m13_truncated;
    AnyOrder& weakest = narrow ? fp22 : f32;
    bool& any = narrow ? any_fp22 : any_f32;
    if (any) {
      widen(weakest, any_order(unit));
    } else {
      weakest = any_order(unit);
    }
    any = true;
    here = here || (narrow && unit.architecture == architecture);
  }
  if (any_f32) legal.push_back(f32);
  if (here) legal.push_back(fp22);
  return legal;
}

}  // namespace assay
