#pragma once
// Quantization of one matrix or of the groups of a ragged one, for every recipe. The header named after each recipe states its
// formulas (per_tensor.h, fp8_block.h, mxfp8.h, nvfp4.h, dbias.h); this is the common call.
//
// A grouped matrix x [R,K] (spec conventions-1.4) holds its groups one after another: group t is splits[t] rows. R may exceed the
// sum of the splits; the rows beyond are neither read nor written, and the same holds for the outputs that belong to them.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/recipes/random_draws.h"
#include "reference/types/format.h"
#include "reference/types/recipe.h"

namespace assay {

struct QuantizeConfig {
  Recipe recipe = Recipe::tensor_current;
  Format output = Format::e4m3;  // e4m3 or e5m2; nvfp4: e2m1
  bool rowwise = true;
  bool columnwise = false;
  bool force_pow_2_scales = false;  // per-tensor and block recipes (tensor_delayed takes its scale as it is)
  float amax_epsilon = 0;           // per-tensor and block recipes: amax below this is raised to it; 0 or more
  ScaleLayout scale_layout = ScaleLayout::compact;
  bool two_dimensional = false;  // mxfp8: 32x32 tiles share a scale; nvfp4: 16x16
  bool dbias = false;            // also sum the columns of each group, in the order of dbias.h
  ZeroSign zero_sign = ZeroSign::kept;
  Activation activation = Activation::off;  // block recipes: x is computed from gate and up (swiglu.h); without dbias

  // nvfp4 only.
  bool hadamard = false;                 // transform 16 rows at a time before the columnwise quantization (bf16 input)
  std::uint16_t hadamard_sign_mask = 0;  // bit i set: element i is negated first
  bool stochastic_rounding = false;      // takes rowwise_random / columnwise_random
  FourOverSix four_over_six = FourOverSix::off;
  float nvfp4_e4m3_max = 448;  // 448, or 256 with 4over6
};

// Random bytes of nvfp4 stochastic rounding that are drawn from the state of a generator (random_draws.h, spec nvfp4-4.3).
struct QuantizeDraws {
  RandomDraws assignment = RandomDraws::given;  // given: rowwise_random and columnwise_random hold the bytes
  bool rowwise = true, columnwise = true;       // directions that the kernel draws for, whichever of them are requested here
  const std::int64_t* state = nullptr;          // [G, 2]: seed and offset of each group, 64 bits without a sign
};

struct QuantizeProblem {
  QuantizeConfig config;
  Format x_type = Format::bf16;  // bf16, f16 or f32
  const void* x = nullptr;       // [rows, columns], row-major; [rows, 2 columns], gate then up, with an activation
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool grouped = false;                    // false: one tensor of all rows, `splits` is not read
  std::span<const std::int64_t> splits;    // [G] rows of each group
  const float* scale = nullptr;            // [G] (or [1]): tensor_delayed
  const float* amax = nullptr;             // [G] (or [1]): nvfp4 tensor amax; null: max |x| of the group
  const float* columnwise_amax = nullptr;  // [G]: nvfp4 columnwise; null: `amax`, or with hadamard the amax after the transform
  const float* noop = nullptr;             // [1]: exactly 1.0 means that nothing is written (spec conventions-1.5)
  const std::uint8_t* rowwise_random = nullptr;     // nvfp4 stochastic rounding: one byte per element of rowwise data
  const std::uint8_t* columnwise_random = nullptr;  // the same for columnwise data, in its stored order
  QuantizeDraws draws = {};
};

// Output pointers. A null pointer: this output is not written (spec conventions-1.6). The outputs of a direction
// are written only if `config` requests that direction. Sizes come from `quantize_outputs`; a pointer to an output that the
// problem does not have is not used. Padding (spec layouts-2.3): of compact scales it is not written, of swizzled ones it
// becomes 0.
struct QuantizeOutput {
  void* rowwise_data = nullptr;
  void* columnwise_data = nullptr;    // transposed, but for mxfp8: spec layouts-1.1, layouts-1.2
  void* rowwise_scale_inv = nullptr;  // f32, e8m0 or e4m3 by recipe; per-tensor recipes: [G], serves both directions
  void* columnwise_scale_inv = nullptr;
  float* amax = nullptr;             // [G]: per-tensor recipes, nvfp4 (rowwise)
  float* columnwise_amax = nullptr;  // [G]: nvfp4 (columnwise)
  float* scale = nullptr;            // [G]: tensor_current
  void* dbias = nullptr;             // [G, columns] in x_type
};

// Shape of every output that `problem` can have, as fixtures store it (golden/schema.md): rank 0 means absent.
struct OutputShape {
  Format type = Format::f32;
  int rank = 0;
  std::int64_t shape[2] = {0, 0};
  std::int64_t elements() const { return rank == 0 ? 0 : rank == 1 ? shape[0] : shape[0] * shape[1]; }
  std::int64_t bytes() const { return elements() * bytes_of(type, 1); }  // e2m1 is counted in bytes of two codes
};
struct QuantizeShapes {
  OutputShape rowwise_data, columnwise_data, rowwise_scale_inv, columnwise_scale_inv;
  OutputShape amax, columnwise_amax, scale, dbias;
};

// Reads no pointer but `splits`. Errors (InvalidArgument): negative sizes or splits, splits that sum to more than
// `rows`, a type the recipe does not take, options of another recipe, an odd extent along which nvfp4 codes are packed,
// sizes that overflow int64.
QuantizeShapes quantize_outputs(const QuantizeProblem& problem);

// All checks of quantize(): the errors above; null x, scale (tensor_delayed) or random bytes (nvfp4 with stochastic rounding; with
// draws their state) where there are elements; draws that the options do not go with; a pointer that is not aligned to its elements.
QuantizeShapes check_quantize(const QuantizeProblem& problem, const QuantizeOutput& output);

// Rows of each group: `splits`, or all the rows of a single tensor.
std::vector<std::int64_t> group_rows(const QuantizeProblem& problem);

// Fast: vectorised and threaded. Errors: those of check_quantize.
void quantize(const QuantizeProblem& problem, const QuantizeOutput& output);

namespace scalar {
// The same call in plain code, one element at a time, to be compared with the specification.
void quantize(const QuantizeProblem& problem, const QuantizeOutput& output);
}  // namespace scalar

}  // namespace assay
