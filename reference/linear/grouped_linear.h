#pragma once
// A grouped linear layer, step by step, over host buffers: what a GroupedLinear module computes in forward and backward,
// for every recipe, every bit (spec grouped-linear-1.1, grouped-linear-1.2). G groups; group t has m_t = splits[t] rows.
//
//   forward  y_t  [m_t, N] = q(x_t) . q(w_t)^T + bias_t          layout TN
//   dgrad    dx_t [m_t, K] = q(dy_t) . q(w_t)                    layout NN
//   wgrad    dw_t [N, K]  (+)= q(dy_t)^T . q(x_t)                layout NT
//   dbias_t  [N] = sum of the rows of dy_t                       dbias.h
//
// q is the quantization of the recipe (quantize.h), to nearest, in the direction that the layout contracts over: rowwise
// for x and w in forward and for dy in dgrad, columnwise for w in dgrad and for dy and x in wgrad. Each step is exactly
// quantize() of both operands followed by grouped_gemm() with the architecture's plan.
//
//   recipe           x, dy                          w                           accumulation
//   none             as they are (bf16 or f16)      as it is                    one chain
//   tensor_current   one scale per group            one scale per group         forward: fast; dgrad, wgrad: split
//   tensor_delayed   scales given                   scales given                the same
//   block            1x128                          128x128                     split always (spec grouped-linear-1.3)
//   mxfp8            1x32                           1x32                        arch sm100
//   nvfp4            1x16; columnwise after the     16x16                       arch sm100
//                    random Hadamard transform
//
// With config.activation (block) the x of forward and wgrad is given as gate and up, [R, 2K], and q(x) is that of silu(gate) * up
// (swiglu.h). dgrad gives the gradient of that product, [R, K]; the backward of the activation itself is not part of the layer.
//
// Scales of mxfp8 and nvfp4 lie swizzled. The wgrad of nvfp4 takes bf16 only, as the transform does.
//
// A device may sum the bias gradient within the quantization of dy (block scaling: only with dgrad,
// spec grouped-linear-1.4) or by itself. The bits are the same: the sum of dy, not of q(dy), in the order
// of dbias.h, rounded once to the type of dy. linear_dbias() computes them.
//
// Rows of x, dy, y and dx beyond the sum of the splits are neither read nor written.
//
// Errors of every step, before anything is written: InvalidArgument, naming the argument (null or misaligned buffers
// where there are elements, sizes, splits, types, nvfp4 with an odd extent along the contraction, a cache that does not
// fit); NotSupported where the architecture lacks the recipe's product.

#include <cstdint>
#include <functional>

#include "reference/gemm/grouped_gemm.h"
#include "reference/linear/linear_config.h"

namespace assay {

struct LinearWeightCache;  // weight_cache.h

struct LinearForward {
  const void* x = nullptr;                   // [R, K]; with an activation [R, 2K]
  const void* w = nullptr;                   // [G*N, K]; not read, and may be null, with a filled cache
  const LinearWeightCache* cache = nullptr;  // the quantized weights; null, or recipe none: w is quantized, or used, directly
  const void* bias = nullptr;                // [G, N] or null
  const float* x_scale = nullptr;            // [G]: tensor_delayed
  const float* w_scale = nullptr;            // [G]: tensor_delayed, without cache
};
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y);

struct LinearDgrad {
  const void* dy = nullptr;  // [R, N]
  const void* w = nullptr;   // as in forward
  const LinearWeightCache* cache = nullptr;
  const float* dy_scale = nullptr;  // [G]: tensor_delayed
  const float* w_scale = nullptr;
};
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx);

struct LinearWgrad {
  const void* dy = nullptr;  // [R, N]
  const void* x = nullptr;   // [R, K]; with an activation [R, 2K]
  const float* dy_scale = nullptr;
  const float* x_scale = nullptr;
  Format dw_type = Format::f32;  // f32 for a main gradient; bf16, f16
  bool accumulate = false;       // dw += ...: beta is 1 and dw is read; false: dw is not read
};
// A group without rows: its dw becomes 0, or stays as it is when accumulating.
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);

// dbias [G, N] in config.type, overwritten; a group without rows gives 0.
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias);

// The steps with another product in place of grouped_gemm(): `multiply` receives the problem that the step makes of its
// quantized operands, and where D lies.
using Multiply = std::function<void(const GroupedGemmProblem&, void*)>;
void linear_forward_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape,
                       const LinearForward& operands, void* y);
void linear_dgrad_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands,
                     void* dx);
void linear_wgrad_by(const Multiply& multiply, const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands,
                     void* dw);

// The plan of the product of a step: `plan`, or if that is null the architecture's. Errors: those of the step, except for
// buffers; a plan for other products.
const AccumulationPlan& linear_plan(const LinearConfig& config, const LinearShape& shape, GemmLayout layout,
                                    const AccumulationPlan* plan = nullptr);

namespace scalar {
// The same through the scalar layers of quantize(), grouped_gemm() and grouped_dbias().
void linear_forward(const LinearConfig& config, const LinearShape& shape, const LinearForward& operands, void* y);
void linear_dgrad(const LinearConfig& config, const LinearShape& shape, const LinearDgrad& operands, void* dx);
void linear_wgrad(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);
void linear_dbias(const LinearConfig& config, const LinearShape& shape, const void* dy, void* dbias);
}  // namespace scalar

}  // namespace assay
