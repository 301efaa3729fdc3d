#pragma once
// What one matrix instruction computes, as data. Since Volta an NVIDIA tensor core does one thing for a block of L
// products and an accumulator C (spec tensor-core-1.1, tensor-core-1.2, tensor-core-1.4):
//
//   e_max = largest exponent among the L products and C; products are not normalised: e = e_a + e_b, significand in [0,4)
//           a term that is exactly zero takes `zero_floor` instead of its own exponent (spec tensor-core-1.3)
//   each term is cut toward zero to `fraction_bits` below 2^e_max; the sum of the cut terms is exact
//   the sum is rounded once to `accumulator`
//
// An architecture is therefore a row of a text file, reference/arithmetic/units.txt, not code.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/types/format.h"

namespace assay {

// How the exact sum is rounded at the end of a fused step.
enum class Accumulator : std::uint32_t {
  f32_truncated,    // 23 fraction bits, toward zero, gradual underflow, 2^128 and more becomes infinity
  e8m13_truncated,  // "FP22": the same with 13 fraction bits, held in an f32 whose low 10 bits are 0
  f16_nearest,      // round to nearest even, 65520 and more becomes infinity
};

// How block scales enter the step.
enum class StepScaling : std::uint32_t {
  none,
  e8m0_per_32,  // kind::mxf8f6f4: the pair's exponent is added to each product's
  e4m3_per_16,  // kind::mxf4nvf4: 16 products are summed exactly, times both significands; e_max from the scales alone
};

// How an instruction is executed.
enum class Execution : std::uint32_t {
  native,        // one fused step per block
  emulated_fp8,  // mma.sync FP8 on SM90/SM100: two f16 steps over interleaved halves from zero, then an f32 (f16) add of C
};

struct TensorCoreUnit {
  std::string_view name;             // "sm90.wgmma.fp8"; the key in plans, case lines and backend statements
  std::string_view architecture;     // "sm90"
  std::string_view instruction;      // "wgmma e4m3/e5m2 -> f32"
  std::span<const Format> operands;  // formats that a and b may have, in any mix unless they are 16 bits wide
  int products_per_step;             // L
  int fraction_bits;                 // F
  Accumulator accumulator;
  int zero_floor;  // exponent of a zero term
  StepScaling scaling;
  Execution execution;
  bool measured_by_us;  // shown on hardware by this project; otherwise `evidence` says who did
  std::string_view evidence;
};

// Every unit known: the built-in ones in a fixed order, then those that add_tensor_core_units() has added (unit_table.h).
std::span<const TensorCoreUnit> tensor_core_units();

// The unit with this name, or nothing.
const TensorCoreUnit* find_tensor_core_unit(std::string_view name);

// One element of a decoded operand: (-1)^negative * significand * 2^(exponent - fraction). Subnormals keep the exponent
// of the smallest normal and are not renormalised. `kind` tells the specials apart.
struct Term {
  enum class Kind : std::uint8_t { finite, infinity, nan };
  Kind kind = Kind::finite;
  bool negative = false;
  std::uint32_t significand = 0;
  int exponent = 0;
  int fraction = 0;
};

// Decodes one element held in `bits` (right-aligned; f32, bf16, f16, e4m3, e5m2 or e2m1).
Term decode_term(Format format, std::uint32_t bits);

// Layer (a): one instruction step. a and b hold `count` <= products_per_step elements (right-aligned bits; missing ones
// are zero terms), c the accumulator as f32 bits (f16 bits for f16_nearest). For scaled units scale_a and scale_b hold the
// scale codes of the step: 1 e8m0 pair, or 4 e4m3 pairs. Returns the new accumulator's bits; NaN is canonical
// (0x7FFFFFFF, f16 0x7FFF; spec tensor-core-1.5), a zero sum is +0.
std::uint32_t tensor_core_step(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                               std::span<const std::uint32_t> b, std::uint32_t c, std::span<const std::uint8_t> scale_a = {},
                               std::span<const std::uint8_t> scale_b = {});

}  // namespace assay
