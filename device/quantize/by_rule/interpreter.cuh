#pragma once
// Carries the instructions of a rule out (program.h), for kWide elements side by side: each instruction is read and decided on
// once for all of them.
//
// The top of the stack is in registers, what lies below it in local memory: an operation on two values reads one of them from
// there.

#include <cstdint>

#include "device/quantize/by_rule/functions.cuh"
#include "device/quantize/by_rule/program.h"

namespace assay::device::by_rule {

ASSAY_BOTH RuleInstruction read_instruction(const RuleInstruction* at) {
#ifdef __CUDA_ARCH__
  const uint2 words = __ldg(reinterpret_cast<const uint2*>(at));
  RuleInstruction read;
  read.op = static_cast<RuleOp>(words.x & 0xFFu);
  read.function = static_cast<std::uint8_t>(words.x >> 8);
  read.index = static_cast<std::uint16_t>(words.x >> 16);
  read.value = float_of_bits(words.y);
  return read;
#else
  return *at;
#endif
}

ASSAY_BOTH float apply(RuleOp op, float a, float b) {
  switch (op) {
    case RuleOp::add: return add(a, b);
    case RuleOp::subtract: return add(a, float_of_bits(bits_of_float(b) ^ 0x8000'0000u));
    case RuleOp::multiply: return multiply(a, b);
    case RuleOp::divide: return divide(a, b);
    case RuleOp::less: return a < b ? 1.0f : 0.0f;
    case RuleOp::less_equal: return a <= b ? 1.0f : 0.0f;
    case RuleOp::equal: return a == b ? 1.0f : 0.0f;
    default: return a != b ? 1.0f : 0.0f;  // not_equal
  }
}

// A call of two values: the usual ones in place.
ASSAY_BOTH float apply_call(FormulaFunction function, float a, float b) {
  switch (function) {
    case FormulaFunction::maximum: return larger(a, b);
    case FormulaFunction::minimum: return smaller(a, b);
    case FormulaFunction::maximum_or_nan: return larger_or_nan(a, b);
    case FormulaFunction::minimum_or_nan: return smaller_or_nan(a, b);
    default: return call_function(function, a, b, 0.0f);
  }
}

// `values` has element(k), up(k), local(index, k), variable(index), slot(index, k), keep_variable(index, value),
// keep_slot(index, value), keep_local(index, k, value) and keep_scale(value); where kJoins, also joined(instructions, count, how).
// `top` is the value of the last statement for each of the kWide elements.
template <int kWide, class Values>
ASSAY_BOTH void run_instructions(const RuleInstruction* program, int count, Values& values, float (&top)[kWide]) {
  float stack[kRuleStackMax][kWide];
  int height = 0;
  for (int at = 0; at < count; ++at) {
    const RuleInstruction step = read_instruction(program + at);
    if (step.op <= RuleOp::slot) {
      if (height > 0) {
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) stack[height - 1][k] = top[k];
      }
      ++height;
      ASSAY_UNROLL
      for (int k = 0; k < kWide; ++k) {
        top[k] = step.op == RuleOp::constant   ? step.value
                 : step.op == RuleOp::element  ? values.element(k)
                 : step.op == RuleOp::up       ? values.up(k)
                 : step.op == RuleOp::local    ? values.local(step.index, k)
                 : step.op == RuleOp::variable ? values.variable(step.index)
                                               : values.slot(step.index, k);
      }
      continue;
    }
    if constexpr (Values::kJoins) {
      if (step.op == RuleOp::join) {  // the first instruction of its statement
        top[0] = values.joined(program + at + 1, step.index, static_cast<FormulaReduction>(step.function));
        at += step.index;
        height = 1;
        continue;
      }
    }
    switch (step.op) {
      case RuleOp::negate:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) top[k] = float_of_bits(bits_of_float(top[k]) ^ 0x8000'0000u);
        break;
      case RuleOp::call_1:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) top[k] = call_function(static_cast<FormulaFunction>(step.function), top[k], 0.0f, 0.0f);
        break;
      case RuleOp::call_2:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) {
          top[k] = apply_call(static_cast<FormulaFunction>(step.function), stack[height - 2][k], top[k]);
        }
        --height;
        break;
      case RuleOp::call_3:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) {
          top[k] = call_function(static_cast<FormulaFunction>(step.function), stack[height - 3][k], stack[height - 2][k], top[k]);
        }
        height -= 2;
        break;
      case RuleOp::select:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) top[k] = stack[height - 3][k] != 0.0f ? stack[height - 2][k] : top[k];
        height -= 2;
        break;
      case RuleOp::keep_variable: values.keep_variable(step.index, top[0]); break;
      case RuleOp::keep_slot: values.keep_slot(step.index, top[0]); break;
      case RuleOp::keep_local:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) values.keep_local(step.index, k, top[k]);
        break;
      case RuleOp::keep_scale: values.keep_scale(top[0]); break;
      case RuleOp::done: height = 0; break;
      default:
        ASSAY_UNROLL
        for (int k = 0; k < kWide; ++k) top[k] = apply(step.op, stack[height - 2][k], top[k]);
        --height;
    }
  }
}

}  // namespace assay::device::by_rule
