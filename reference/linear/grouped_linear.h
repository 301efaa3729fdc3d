#pragma once
// A grouped linear layer, step by step, over host buffers: what a GroupedLinear module computes in forward and backward,
// for every recipe, every bit (requirements.md sections 1, 3 and 4). G groups; group t has splits[t] rows.
//
//   forward  y_t  [m_t, N] = q(x_t) . q(w_t)^T + bias_t          layout TN
//   dgrad    dx_t [m_t, K] = q(dy_t) . q(w_t)                    layout NN
//   wgrad    dw_t [N, K]  (+)= q(dy_t)^T . q(x_t)                layout NT
//   dbias_t  [N] = sum of the rows of dy_t, from dy itself, in the order of dbias.h
//
// q is the quantization of the recipe, in the direction that the layout contracts over: rowwise for x and w in forward and
// for dy in dgrad, columnwise for w in dgrad and for dy and x in wgrad.
//
//   recipe           x, dy                          w                           accumulation
//   none             as they are (bf16 or f16)      as it is                    one chain
//   tensor_current   one scale a group              one scale a group           forward: fast; dgrad, wgrad: split
//   tensor_delayed   scales given                   scales given                the same
//   block            1x128                          128x128                     split, by definition
//   mxfp8            1x32                           1x32                        arch sm100
//   nvfp4            1x16; columnwise after the     16x16                       arch sm100
//                    random Hadamard transform

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/formats/format.h"

namespace assay {

enum class LinearRecipe : std::uint32_t { none = 0, tensor_current = 1, tensor_delayed = 2, block = 3, mxfp8 = 4, nvfp4 = 5 };
std::string_view name_of(LinearRecipe recipe);
std::optional<LinearRecipe> linear_recipe_named(std::string_view name);

struct LinearConfig {
  LinearRecipe recipe = LinearRecipe::none;
  Format type = Format::bf16;         // of x, w, bias, y, dy, dx: bf16 or f16
  Format forward_code = Format::e4m3; // of q(x) and q(w): e4m3 or e5m2 (nvfp4: e2m1, whatever stands here)
  Format backward_code = Format::e4m3;  // of q(dy)
  bool force_pow_2_scales = false;    // tensor_current, block
  float amax_epsilon = 0;             // tensor_current, block
  std::uint16_t hadamard_sign_mask = 0;  // nvfp4
  std::string_view architecture = "sm90";  // whose arithmetic; mxfp8 and nvfp4 need one that has them: "sm100"
};

struct LinearShape {
  std::span<const std::int64_t> splits;  // [G]
  std::int64_t rows = 0;                 // R, at least the sum of the splits
  std::int64_t N = 0, K = 0;
};

// Quantized weights of all groups, kept from one microbatch to the next. Empty for recipe none.
struct LinearWeightCache {
  std::vector<std::byte> rowwise_data, rowwise_scale_inv, columnwise_data, columnwise_scale_inv;
  std::vector<float> amax;  // nvfp4: [G]
  bool filled = false;
};

// Quantizes w [G*N, K] into `cache`, both directions. `noop` (one f32, may be null) exactly 1.0: the cache is kept as it is,
// data and scales of both directions alike. `scale` [G]: tensor_delayed. Errors (InvalidArgument): as quantize(); a skip
// although the cache was never filled or does not fit this shape and recipe.
void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache);

// Each step quantizes its activations or gradients itself. With `cache` the quantized weights come from there and w is not
// read; without it w is quantized on the spot. Scales [G] are for tensor_delayed. Rows beyond the splits are not touched.
// Errors: InvalidArgument as quantize() and grouped_gemm(), NotSupported where the architecture lacks the recipe's GEMM;
// nothing is written then.
struct LinearForward {
  const void* x = nullptr;     // [R, K]
  const void* w = nullptr;     // [G*N, K]
  const LinearWeightCache* cache = nullptr;
  const void* bias = nullptr;  // [G, N] or null
  const float* x_scale = nullptr;
  const float* w_scale = nullptr;
};
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y);

struct LinearDgrad {
  const void* dy = nullptr;    // [R, N]
  const void* w = nullptr;
  const LinearWeightCache* cache = nullptr;
  const float* dy_scale = nullptr;
  const float* w_scale = nullptr;
};
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx);

struct LinearWgrad {
  const void* dy = nullptr;    // [R, N]
  const void* x = nullptr;     // [R, K]
  const float* dy_scale = nullptr;
  const float* x_scale = nullptr;
  Format dw_type = Format::f32;   // f32 for a main gradient, else the type of the weights
  bool accumulate = false;        // dw += ...: beta is 1 and dw is read; a group without rows leaves dw as it is
};
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);

// dbias [G, N] in config.type from dy itself; a group without rows gives 0.
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias);

// Whether wgrad accumulates into a main gradient: the first microbatch of a step overwrites, the others add; nothing said
// means add. Under a captured skip flag every microbatch adds, and the caller clears the gradient (requirements.md D5).
bool accumulates(std::optional<bool> is_first_microbatch, bool skip_flag_captured);

// Weight gradients put off: backward stores the work, backward_dw() carries out the oldest once. Operands are copied when
// stored, so their buffers may be reused before it runs.
class DeferredWgrad {
 public:
  void store(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);
  std::size_t pending() const { return work_.size(); }
  // Errors (InvalidArgument): nothing is stored.
  void backward_dw();

 private:
  std::deque<std::function<void()>> work_;
};

namespace scalar {
// The same through the scalar layer of quantize() and grouped_gemm().
void linear_quantize_weights(const LinearConfig& config, const LinearShape& shape, const void* w, const float* scale,
                             const float* noop, LinearWeightCache& cache);
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y);
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx);
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias);
}  // namespace scalar

}  // namespace assay
