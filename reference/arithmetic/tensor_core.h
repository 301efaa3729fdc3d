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
  f32_nearest,      // 23 fraction bits, round to nearest even: units of other vendors, which are not fused
};

// How the products of a step and C become one value (spec tensor-core-1.1, 5.1 to 5.4).
enum class StepSum : std::uint32_t {
  fused,   // L + 1 terms on one grid, cut, added exactly: the rule above
  joined,  // the products on one grid, or those of each chain on one; then C on a grid of its own, with a floor; CDNA3
  exact,   // products and C added without a loss, one rounding; CDNA1
  tree,    // products added two and two in f32, the result to C; CDNA2
  chains,  // fused multiply-adds in f32, one chain or several that are added at the end; f32 operands of AMD, AMX
};

// Which subnormal values count as zeros (spec tensor-core-5.5).
enum class Flush : std::uint32_t {
  none,
  f32_values,            // every f32 that an addition or multiply-add reads or writes, with its sign
  operands_and_results,  // operands in their own format and C, which become +0; f32 results, with their sign
};

// How block scales enter the step.
enum class StepScaling : std::uint32_t {
  none,
  e8m0_per_32,  // the pair's exponent is added to each product's, or to each sum of 16 products
  e4m3_per_16,  // kind::mxf4nvf4: 16 products are summed exactly, times both significands; e_max from the scales alone
  e8m0_per_16,  // kind::mxf4nvf4 with E8M0 scales
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
  int group = 1;  // products that are added exactly before the cut: 1, or 16 under scales
  StepSum sum = StepSum::fused;
  int chains = 1;            // joined, chains: product k belongs to chain k mod this
  int joined_bits = 0;       // joined: fraction bits kept when C joins
  bool drops_far_c = false;  // joined: a C wholly below the grid is 0; otherwise a negative one is a unit of the grid
  Flush flush = Flush::none;
  bool tf32 = false;  // operands in f32 registers lose their low 13 bits
};

// Products that one pair of scales covers, and the number of scales of a step with `count` products; 0 without scales.
int products_per_scale(StepScaling scaling);
std::size_t scales_of_step(const TensorCoreUnit& unit, std::size_t count);

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

// Decodes one element held in `bits` (right-aligned; f32, bf16, f16, an FP8, FP6 or FP4 format).
Term decode_term(Format format, std::uint32_t bits);

// Layer (a): one instruction step. a and b hold `count` <= products_per_step elements (right-aligned bits; missing ones
// are zero terms), c the accumulator as f32 bits (f16 bits for f16_nearest). For scaled units scale_a and scale_b hold the
// scale codes of the step, scales_of_step() each. Returns the new accumulator's bits; NaN is canonical
// (0x7FFFFFFF, f16 0x7FFF; spec tensor-core-1.5), a zero sum is +0.
std::uint32_t tensor_core_step(const TensorCoreUnit& unit, Format a_type, std::span<const std::uint32_t> a, Format b_type,
                               std::span<const std::uint32_t> b, std::uint32_t c, std::span<const std::uint8_t> scale_a = {},
                               std::span<const std::uint8_t> scale_b = {});

}  // namespace assay
