#pragma once
// The inner part of the fast grouped GEMM: eight rows by 64 columns of D, through a run of fused steps.
//
// Terms of a step (spec tensor-core-1.1) are made in floating point without a rounding, so that one conversion does
// alignment, truncation toward zero and sign at once:
//
//   product   a * b                          exact: significands have at most 11 bits
//   aligned   product * 2^(F - e_max)        exact: a power of two; below 2^(F+2)
//   cut       int32 of it                    conversion to an integer truncates toward zero
//   sum       two int32 halves               each half of the step and C stays below 2^31 in every unit
//   round     the sum, truncated to f32      the grid 2^(e_max - F) comes back in with a power of two
//
// Two kernels compute the same bits. `narrow` (AVX-512) takes operands whose exponents lie within +-42, where values fit
// f32, exponents fit a byte and no result can overflow or become subnormal. `wide` (plain C++, cloned for the machine's
// vector unit) takes everything: any exponent, infinities, NaN, f16 accumulators, block-scaled FP4.

#include <cstdint>
#include <optional>

#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"

namespace assay::gemm {

inline constexpr int kRowGroup = 8;   // rows of one kernel call
inline constexpr int kPanel = 64;     // columns of one kernel call
inline constexpr int kFp4Group = 16;  // products that a block-scaled FP4 step sums exactly
inline constexpr int kFp4Groups = 4;  // such groups per step

// Largest |exponent| of an element, and |scale exponent| of an operand (mxfp8), that the narrow kernel takes.
inline constexpr int kNarrowExponent = 42;
inline constexpr int kNarrowScale = 30;
inline constexpr int kNarrowZero = -128;    // the byte that stands for the exponent of a zero; sums saturate
inline constexpr int kWideZero = -1 << 20;  // the same in 32 bits: below any sum that a product can have

// Which k the slots of a step hold, counted from the step's first: 0 1 2 3 ..., or the two halves of emulated FP8:
// 0 1 4 5 8 9 ... and 2 3 6 7 10 11 ... (spec tensor-core-3.3).
enum class Slots : std::uint8_t { contiguous, low_pairs, high_pairs };

inline int slot_offset(Slots slots, int slot) {
  switch (slots) {
    case Slots::low_pairs: return slot / 2 * 4 + slot % 2;
    case Slots::high_pairs: return slot / 2 * 4 + slot % 2 + 2;
    default: return slot;
  }
}

struct Step {
  std::int64_t k = 0;  // first k of the step
  int count = 0;       // products that exist from `k` on; further ones are zero terms
  Slots slots = Slots::contiguous;
  bool ends_link = false;      // emulated FP8: the two-step chain is added to the running value here
  bool ends_interval = false;  // end of a promotion interval: the chain's value enters the partial sum here
  std::int64_t next_k = -1;    // where it ends: first k of the next interval of the slice; -1 if it is the last
};

// The rule of a chain of steps: from the unit and the plan.
struct ChainRule {
  int products = 0;       // slots of a step, even
  int fraction_bits = 0;  // F
  int zero_floor = 0;
  Accumulator accumulator = Accumulator::f32_truncated;
  StepScaling scaling = StepScaling::none;
  Promotion promotion = Promotion::none;
  bool linked = false;  // emulated FP8
  std::optional<Format> widen = {};
  bool flushes = false;  // promotions take a subnormal f32 as a zero of its sign
};

// Packed operands, slot by slot: slot s of step j of line l is at [(j * products + s) * width + l], width being kRowGroup
// or kPanel. Pointers that a kernel does not use may be null.
struct PackedLines {
  const float* value = nullptr;                  // narrow, FP4: the element
  const std::uint32_t* exponent_word = nullptr;  // narrow, rows: its exponent as a byte, four times
  const std::int8_t* exponent_byte = nullptr;    // narrow, columns
  const float* significand = nullptr;            // wide: in (-2, 2), infinite or NaN
  const std::int32_t* exponent = nullptr;        // wide
  // Promotion with scales: [step][line], the f32 scale of the step's promotion interval. FP4: [step][group][line].
  const float* scale = nullptr;
  const float* next_scale = nullptr;  // promotion that rescales: the same of the next interval
  // mxfp8: [step][line], the scale's exponent. FP4: [step][group][line], exponent of the e4m3 scale, kWideZero if it is 0.
  const std::int32_t* scale_exponent = nullptr;
  const std::uint32_t* nonzero = nullptr;  // FP4: [step][group][line], one bit an element
  bool special = false;                    // some element or scale is infinite or NaN
};

// Running values of 8 x 64 elements, each [kRowGroup][kPanel].
struct ChainState {
  float* chain;    // the unit's accumulator (an f16 one is held as its exact value)
  float* link;     // emulated FP8: the sum over pairs of steps; otherwise not used
  float* partial;  // the sum over promotion intervals
};

struct KernelCall {
  const ChainRule* rule = nullptr;
  const Step* steps = nullptr;
  std::int64_t step_count = 0;
  int rows = 0;  // 1 to kRowGroup; further rows are not computed
  PackedLines row_lines, column_lines;
  ChainState state{};
};

void run_wide(const KernelCall& call);
void run_fp4(const KernelCall& call);

// Whether the narrow kernel may be used: this machine has the instructions, and ASSAY_SIMD is not "portable".
bool narrow_kernel_available();
// Lets a test compare both kernels on one machine.
void allow_narrow_kernel(bool allowed);
// Whether it computes this rule.
bool narrow_kernel_takes(const ChainRule& rule);
// Precondition: both of the above, and operands within the ranges given above.
void run_narrow(const KernelCall& call);

}  // namespace assay::gemm
