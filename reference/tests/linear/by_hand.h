#pragma once
// The second route to a step: one group at a time, each as a separate matrix, quantized as a single tensor with compact scales
// and multiplied as a single group under a plan that is named here. No offset, no table and no code is shared with
// reference/linear.

#include <cstring>
#include <string>
#include <vector>

#include "reference/gemm/grouped_gemm.h"
#include "reference/recipes/quantize.h"
#include "reference/tests/linear/linear_case.h"

namespace assay::linear_suite {

// One matrix of a group, quantized in one direction.
struct Quantized {
  Bytes data;
  std::vector<float> scales;  // as f32 or, for mxfp8 and nvfp4, bytes
  float amax = 0;
  GemmOperand operand;
};

enum class What { x, dy, w };

inline void quantize_by_hand(const Case& c, What what, bool columnwise, const void* from, std::int64_t rows, std::int64_t columns,
                             float scale, Quantized& to) {
  const LinearConfig& config = c.config;
  if (config.recipe == LinearRecipe::none) {
    to.operand = {config.type, from, nullptr, false, nullptr};
    return;
  }
  QuantizeProblem problem;
  problem.x_type = config.type;
  problem.x = from;
  problem.rows = rows;
  problem.columns = columns;
  problem.scale = &scale;
  QuantizeConfig& q = problem.config;
  q.rowwise = !columnwise;
  q.columnwise = columnwise;
  q.output = what == What::dy ? config.backward_code : config.forward_code;
  switch (config.recipe) {
    case LinearRecipe::tensor_current:
      q.recipe = Recipe::tensor_current;
      q.force_pow_2_scales = config.force_pow_2_scales.value_or(false);
      q.amax_epsilon = config.amax_epsilon;
      break;
    case LinearRecipe::tensor_delayed: q.recipe = Recipe::tensor_delayed; break;
    case LinearRecipe::block:
      q.recipe = what == What::w ? Recipe::block_128x128 : Recipe::block_1x128;
      q.force_pow_2_scales = config.force_pow_2_scales.value_or(true);
      q.amax_epsilon = config.amax_epsilon;
      break;
    case LinearRecipe::mxfp8: q.recipe = Recipe::mxfp8; break;
    default:
      q.recipe = Recipe::nvfp4;
      q.output = Format::e2m1;
      q.two_dimensional = what == What::w;
      if (what != What::w && columnwise) {
        q.hadamard = true;
        q.hadamard_sign_mask = config.hadamard_sign_mask;
      }
  }
  to.data.assign(static_cast<std::size_t>(rows * columns) + 16, 0xEE);
  to.scales.assign(static_cast<std::size_t>((rows + 128) * (columns + 128)) / 4, -1.0f);  // enough for every recipe
  QuantizeOutput output;
  (columnwise ? output.columnwise_data : output.rowwise_data) = to.data.data();
  const bool one_scale = is_per_tensor(q.recipe);
  (columnwise && !one_scale ? output.columnwise_scale_inv : output.rowwise_scale_inv) = to.scales.data();
  if (q.recipe == Recipe::nvfp4) (columnwise ? output.columnwise_amax : output.amax) = &to.amax;
  scalar::quantize(problem, output);
  to.operand = {q.output, to.data.data(), to.scales.data(), columnwise, &to.amax};
}

inline const char* plan_by_hand(const Case& c, GemmLayout layout) {
  switch (c.config.recipe) {
    case LinearRecipe::none: return c.config.type == Format::bf16 ? "cublaslt.sm90.bf16" : "cublaslt.sm90.f16";
    case LinearRecipe::block:
      return layout == GemmLayout::NT ? "cublaslt.sm90.fp8_block.rows_first" : "cublaslt.sm90.fp8_block.scales_first";
    case LinearRecipe::mxfp8: return "sm100.mxfp8.chain";
    case LinearRecipe::nvfp4: return "sm100.nvfp4.chain";
    default: return layout == GemmLayout::TN ? "cublaslt.sm90.fp8_tensor.fast" : "cublaslt.sm90.fp8_tensor.split";
  }
}

inline GroupedGemmProblem product_by_hand(const Case& c, GemmLayout layout, const std::int64_t& rows) {
  constexpr GemmKind kKinds[] = {GemmKind::bf16,      GemmKind::fp8_per_tensor, GemmKind::fp8_per_tensor,
                                 GemmKind::fp8_block, GemmKind::mxfp8,          GemmKind::nvfp4};
  GroupedGemmProblem problem;
  problem.kind = kKinds[static_cast<int>(c.config.recipe)];
  if (c.config.recipe == LinearRecipe::none && c.config.type == Format::f16) problem.kind = GemmKind::f16;
  problem.layout = layout;
  problem.splits = {&rows, 1};
  problem.rows = rows;
  problem.N = c.layout.N;
  problem.K = c.layout.K;
  problem.d_type = c.config.type;
  problem.plan = find_accumulation_plan(plan_by_hand(c, layout));
  return problem;
}

inline Matrix forward_by_hand(const Case& c, const Operands& o) {
  const Layout& l = c.layout;
  Matrix y(c.config.type, l.rows() * l.N, kPoison);
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    if (l.splits[t] == 0) continue;
    const auto g = static_cast<std::int64_t>(t);
    GroupedGemmProblem problem = product_by_hand(c, GemmLayout::TN, l.splits[t]);
    Quantized x, w;
    quantize_by_hand(c, What::x, false, o.x.at(l.first(t) * l.K), l.splits[t], l.K, o.x_scale[t], x);
    quantize_by_hand(c, What::w, false, o.w.at(g * l.N * l.K), l.N, l.K, o.w_scale[t], w);
    problem.x = x.operand;
    problem.w = w.operand;
    scalar::grouped_gemm(problem, y.at(l.first(t) * l.N));
    for (std::int64_t i = 0; c.bias && i < l.splits[t] * l.N; ++i) {  // on the rounded product, and rounded again
      const std::int64_t at = l.first(t) * l.N + i;
      y.set(at, static_cast<float>(y.value(at) + o.bias.value(g * l.N + i % l.N)));
    }
  }
  return y;
}

inline Matrix dgrad_by_hand(const Case& c, const Operands& o) {
  const Layout& l = c.layout;
  Matrix dx(c.config.type, l.rows() * l.K, kPoison);
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    if (l.splits[t] == 0) continue;
    const auto g = static_cast<std::int64_t>(t);
    GroupedGemmProblem problem = product_by_hand(c, GemmLayout::NN, l.splits[t]);
    Quantized dy, w;
    quantize_by_hand(c, What::dy, false, o.dy.at(l.first(t) * l.N), l.splits[t], l.N, o.dy_scale[t], dy);
    quantize_by_hand(c, What::w, true, o.w.at(g * l.N * l.K), l.N, l.K, o.w_scale[t], w);
    problem.dy = dy.operand;
    problem.w = w.operand;
    scalar::grouped_gemm(problem, dx.at(l.first(t) * l.K));
  }
  return dx;
}

inline Matrix wgrad_by_hand(const Case& c, const Operands& o) {
  const Layout& l = c.layout;
  Matrix dw(c.dw_type, l.groups() * l.N * l.K);
  if (c.accumulate) dw = o.main_grad;
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    if (l.splits[t] == 0) continue;  // 0, or the contents before
    const auto g = static_cast<std::int64_t>(t);
    GroupedGemmProblem problem = product_by_hand(c, GemmLayout::NT, l.splits[t]);
    Quantized dy, x;
    quantize_by_hand(c, What::dy, true, o.dy.at(l.first(t) * l.N), l.splits[t], l.N, o.dy_scale[t], dy);
    quantize_by_hand(c, What::x, true, o.x.at(l.first(t) * l.K), l.splits[t], l.K, o.x_scale[t], x);
    problem.dy = dy.operand;
    problem.x = x.operand;
    problem.d_type = c.dw_type;
    const float one = 1;
    if (c.accumulate) problem.beta = {&one, 1};
    if (c.accumulate) problem.c = o.main_grad.at(g * l.N * l.K);
    scalar::grouped_gemm(problem, dw.at(g * l.N * l.K));
  }
  return dw;
}

// spec dbias-1.1, written out: halves of 64 rows, pairs of halves, then the tiles in turn, each sum an f32.
inline Matrix dbias_by_hand(const Case& c, const Operands& o) {
  const Layout& l = c.layout;
  Matrix sums(c.config.type, l.groups() * l.N);
  for (std::size_t t = 0; t < l.splits.size(); ++t) {
    for (std::int64_t n = 0; n < l.N; ++n) {
      std::vector<float> halves((static_cast<std::size_t>(l.splits[t]) + 127) / 128 * 2, 0.0f);
      for (std::int64_t m = 0; m < l.splits[t]; ++m)
        halves[static_cast<std::size_t>(m / 64)] += static_cast<float>(o.dy.value((l.first(t) + m) * l.N + n));
      float sum = 0;
      for (std::size_t tile = 0; tile < halves.size(); tile += 2) {
        const float pair = halves[tile] + halves[tile + 1];
        sum += pair;
      }
      sums.set(static_cast<std::int64_t>(t) * l.N + n, sum);
    }
  }
  return sums;
}

}  // namespace assay::linear_suite
