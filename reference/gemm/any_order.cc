#include "reference/gemm/any_order.h"

#include <algorithm>

#include "reference/types/error.h"

namespace assay {
namespace {

constexpr std::int64_t kShortStepInterval = 128;  // K of the smallest tile; a slice consists of several

bool has(const TensorCoreUnit& unit, Format type) {
  return std::find(unit.operands.begin(), unit.operands.end(), type) != unit.operands.end();
}

bool is_fp8(Format type) { return type == Format::e4m3 || type == Format::e5m2; }

// Whether legal_arithmetic() counts the unit for another architecture: no earlier arithmetic, and none that a caller has
// added for a chip of its own, loosens the bounds of all.
bool is_general(const TensorCoreUnit& unit) {
  return unit.fraction_bits >= (unit.accumulator == Accumulator::e8m13_truncated ? 13 : 24);
}

// Takes the weaker value of each member.
void widen(AnyOrder& weakest, const AnyOrder& other) {
  weakest.fraction_bits = std::min(weakest.fraction_bits, other.fraction_bits);
  weakest.step_fraction_bits = std::min(weakest.step_fraction_bits, other.step_fraction_bits);
  weakest.zero_floor = std::max(weakest.zero_floor, other.zero_floor);
  weakest.products_per_step = std::min(weakest.products_per_step, other.products_per_step);
}

// Units that add to an f32 to nearest (spec tensor-core-5.1 to 5.4). What they cut or flush is at most what these numbers say.
AnyOrder any_order_to_nearest(const TensorCoreUnit& unit) {
  const bool f16_only = std::all_of(unit.operands.begin(), unit.operands.end(), [](Format each) { return each == Format::f16; });
  if (unit.flush == Flush::operands_and_results || (unit.flush == Flush::f32_values && !f16_only)) {
    throw NotSupported("no bound is known for " + std::string(unit.name) + ": it takes subnormal operands for zeros");
  }
  AnyOrder hardware;
  hardware.step_fraction_bits = 23;
  hardware.step_nearest = true;
  hardware.short_step_interval = kShortStepInterval;
  hardware.fraction_bits = 60;
  hardware.products_per_step = unit.sum == StepSum::exact ? unit.products_per_step : 1;
  if (unit.flush == Flush::f32_values)
    hardware.zero_floor = hardware.fraction_bits - 126;  // a flushed sum loses less than 2^-126
  if (unit.sum != StepSum::joined) return hardware;
  hardware.fraction_bits = unit.fraction_bits - 1;  // a floor is off by up to a unit for each term, and C has one of its own
  hardware.zero_floor = unit.zero_floor;
  hardware.products_per_step = unit.products_per_step;
  return hardware;
}

}  // namespace

AnyOrder any_order(const TensorCoreUnit& unit) {
  if (unit.sum != StepSum::fused) return any_order_to_nearest(unit);
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
    case Accumulator::f32_nearest: break;  // of no fused sum
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
    if (!takes(unit, kind, rows, columns) || unit.accumulator == Accumulator::f16_nearest || unit.sum != StepSum::fused) continue;
    if (unit.architecture != architecture && !is_general(unit)) continue;
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
