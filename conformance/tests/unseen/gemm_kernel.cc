// Grouped products as kernels do them: tiles of D, stages of K, promotion, epilogue. Faults are where kernels have them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "conformance/ops/answer.h"
#include "conformance/ops/grouped_gemm.h"
#include "conformance/tests/unseen/kernels.h"
#include "reference/arithmetic/decoded.h"
#include "reference/gemm/problem.h"
#include "reference/gemm/quantized_output.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::unseen {
namespace {

struct Product {
  const GroupedGemmProblem& problem;
  const GroupedGemmView& view;
  AccumulationPlan plan;
  const TensorCoreUnit* unit;
  std::vector<std::size_t> group_of;  // number of the caller's group of each view

  const GroupView* group_before(std::size_t t) const { return t > 0 ? &view.groups[t - 1] : nullptr; }

  // ---- Operands ----
  std::uint32_t code(const OperandView& o, std::int64_t i, std::int64_t k) const { return o.element(i, k); }

  DecodedLines decoded(const GroupView& g, const OperandView& o, bool rows) const {
    const bool turned = on("dy_is_read_as_e4m3") && rows && o.type == Format::e5m2;
    DecodedLines lines(*unit, turned ? Format::e4m3 : o.type);
    lines.resize(static_cast<std::size_t>(o.extent), static_cast<std::size_t>(depth(g)));
    for (std::int64_t i = 0; i < o.extent; ++i)
      for (std::int64_t k = 0; k < depth(g); ++k) {
        std::uint32_t bits = k < o.depth ? code(o, i, k) : past(g, o, i, k);
        if (dropped(o.depth, k)) bits = 0;
        lines.set(static_cast<std::size_t>(i), static_cast<std::size_t>(k), bits);
      }
    return lines;
  }
  // Products of one element, with those that a tail is not masked for.
  std::int64_t depth(const GroupView& g) const {
    if (on("k_tail_reads_next_group") && view.groups.back().d_offset != g.d_offset) return (g.depth + 15) / 16 * 16;
    if (on("k_tail_is_not_masked")) return (g.depth + 31) / 32 * 32;
    return g.depth;
  }
  // Past the end along k: what lies there in memory. NT: the next group's rows.
  std::uint32_t past(const GroupView& g, const OperandView& o, std::int64_t i, std::int64_t k) const {
    if (on("k_tail_reads_next_group")) {
      const GroupView& next = view.groups[static_cast<std::size_t>(&g - view.groups.data()) + 1];
      return k - o.depth < next.depth ? o.element(i, k) : 0;
    }
    const bool last = i + 1 == o.extent;  // a row of K elements goes on in the next row
    return last ? 0 : o.element(i + 1, k - o.depth);
  }
  bool dropped(std::int64_t depth, std::int64_t k) const {
    if (on("k_tail_is_dropped") || on("two_bias_and_tail")) return k >= depth / 64 * 64;
    if (on("last_k_of_32_is_dropped")) return depth % 32 != 0 && k == depth - 1;
    return false;
  }

  // ---- Scales ----
  std::int64_t stage(std::int64_t k) const {
    if (on("scales_of_stage_before")) return k >= 128 ? k - 128 : k;
    if (on("scales_of_first_stage")) return 0;
    if (on("split_k_takes_scales_of_slice_0")) return k % 256;
    return k;
  }
  float s_rows(const GroupView& g, std::int64_t i, std::int64_t k) const {
    const ScaleView& s = g.rows.scale;
    if (on("second_warpgroup_takes_first_scales") && i >= 64) i -= 64;
    if (on("row_scales_are_not_staged")) return s.value(i, stage_rows(k));
    return s.value(i, stage(k));
  }
  std::int64_t stage_rows(std::int64_t k) const { return k >= 256 ? k - 256 : k; }  // two buffers, refilled once too late
  float s_cols(std::size_t t, const GroupView& g, std::int64_t j, std::int64_t k) const {
    const ScaleView& s = g.columns.scale;
    if (on("weight_scales_of_expert_0") || on("two_alpha_and_expert_0")) return view.groups[0].columns.scale.value(j, k);
    if (on("weight_scales_of_expert_before") && t > 0) return view.groups[t - 1].columns.scale.value(j, k);
    if (on("weight_scales_transposed")) {
      const std::int64_t nb = j / 128, kb = k / 128, kn = (g.depth + 127) / 128, nn = (g.n + 127) / 128;
      if (kb < nn && nb < kn) return s.value(kb * 128, nb * 128);
      return s.value(j, k);
    }
    if (on("second_n_tile_takes_first_scale") && j >= 128) j -= 128;
    if (on("weight_scales_of_256_columns")) return s.value(j / 256 * 256, k);
    return s.value(j, stage(k));
  }
  std::uint8_t byte_scale(const ScaleView& s, std::int64_t i, std::int64_t k, bool rows) const {
    if (on("mx_scale_serves_64")) return s.code(i, k / 64 * 64);
    if (on("nv_scale_of_block_before")) return s.code(i, k >= 16 ? k - 16 : k);
    if (on("nv_scales_of_pair_exchanged") && rows) {
      const std::int64_t other = (k / 16 ^ 1) * 16;
      return s.code(i, other < depth_k ? other : k);
    }
    if (on("scales_are_read_compact") && s.swizzled) {
      return static_cast<const std::uint8_t*>(s.data)[i * s.tiles * 4 + k / s.k_block];
    }
    if (on("scale_rows_of_lane_off") && rows && i % 128 >= 96) return s.code(i - 32, k);
    return s.code(i, k);
  }
  std::int64_t depth_k = 0;

  // ---- The sum ----
  float chain(const GroupView& g, const DecodedLines& a, const DecodedLines& b, std::int64_t i, std::int64_t j, std::int64_t k0,
              std::int64_t k1, float from) const {
    std::uint32_t acc = std::bit_cast<std::uint32_t>(from);
    for (std::int64_t k = k0; k < k1; k += unit->products_per_step) {
      const std::int64_t n = std::min<std::int64_t>(unit->products_per_step, k1 - k);
      std::uint8_t sa[8], sb[8];
      std::size_t scales = 0;
      if (unit->scaling != StepScaling::none) {
        for (std::int64_t at = k; at < k + n; at += g.rows.scale.k_block, ++scales) {
          sa[scales] = byte_scale(g.rows.scale, i, at, true);
          sb[scales] = byte_scale(g.columns.scale, j, at, false);
        }
      }
      acc = tensor_core_step(*unit,
                             a.line(static_cast<std::size_t>(i)).part(static_cast<std::size_t>(k), static_cast<std::size_t>(n)),
                             b.line(static_cast<std::size_t>(j)).part(static_cast<std::size_t>(k), static_cast<std::size_t>(n)),
                             acc, {sa, scales}, {sb, scales});
    }
    return std::bit_cast<float>(acc);
  }

  float simt(const GroupView& g, std::int64_t i, std::int64_t j) const {
    float acc = 0;
    for (std::int64_t k = 0; k < g.depth; ++k) {
      const auto value = [](const OperandView& o, std::uint32_t bits) {
        return o.type == Format::bf16 ? scalar::decode_bf16(static_cast<std::uint16_t>(bits))
                                      : scalar::decode_f16(static_cast<std::uint16_t>(bits));
      };
      acc = std::fma(value(g.rows, g.rows.element(i, k)), value(g.columns, g.columns.element(j, k)), acc);
    }
    return acc;
  }

  float slice(std::size_t t, const GroupView& g, const DecodedLines& a, const DecodedLines& b, std::int64_t i, std::int64_t j,
              std::int64_t k0, std::int64_t k1, float from = 0) const {
    const std::int64_t interval = plan.promotion_interval == 0 ? std::max<std::int64_t>(k1 - k0, 1) : plan.promotion_interval;
    float acc = from;
    for (std::int64_t k = k0; k < k1; k += interval) {
      const float v = chain(g, a, b, i, j, k, std::min(k + interval, k1), plan.promotion == Promotion::none ? acc : 0);
      switch (plan.promotion) {
        case Promotion::none: acc = v; break;
        case Promotion::add: acc += v; break;
        case Promotion::fma_scales_first: {
          const float s = s_rows(g, i, k) * s_cols(t, g, j, k);
          if (on("promotion_rounds_twice")) {
            const float p = s * v;
            acc = acc + p;
          } else {
            acc = std::fma(s, v, acc);
          }
          break;
        }
        case Promotion::fma_rows_first: acc = std::fma(v * s_rows(g, i, k), s_cols(t, g, j, k), acc); break;
        default: acc = std::fma(v * s_cols(t, g, j, k), s_rows(g, i, k), acc);
      }
    }
    return acc;
  }

  float to_d(float v) const {
    if (view.d_type == Format::f32) return v;
    return view.d_type == Format::bf16 ? scalar::decode_bf16(scalar::encode_bf16(v)) : scalar::decode_f16(scalar::encode_f16(v));
  }

  float sum(std::size_t t, const GroupView& g, const DecodedLines& a, const DecodedLines& b, std::int64_t i, std::int64_t j,
            float left) const {
    const std::int64_t K = depth(g), half = (K / 2 + 127) / 128 * 128;
    if (on("computed_without_tensor_cores")) return simt(g, i, j);
    if (on("split_k_in_two") || on("two_split_and_rows_first"))
      return slice(t, g, a, b, i, j, 0, half) + slice(t, g, a, b, i, j, half, K);
    if (on("split_k_partials_in_bf16"))
      return to_d(to_d(slice(t, g, a, b, i, j, 0, half)) + to_d(slice(t, g, a, b, i, j, half, K)));
    if (on("k_from_the_end")) {
      float acc = 0;
      for (std::int64_t k = (K - 1) / unit->products_per_step * unit->products_per_step; k >= 0; k -= unit->products_per_step)
        acc = chain(g, a, b, i, j, k, std::min<std::int64_t>(k + unit->products_per_step, K), acc);
      return acc;
    }
    return slice(t, g, a, b, i, j, 0, K, on("accumulators_are_not_cleared") ? left : 0);
  }

  // ---- The epilogue ----
  float factor(std::size_t t, const GroupView& g) const {
    float alpha = g.alpha;
    if (on("alpha_of_group_0")) alpha = view.groups[0].alpha;
    if (g.depth == 0) return alpha;
    if (view.kind == GemmKind::fp8_per_tensor && plan.scale_vectors == ScaleVectors::none) {
      const float rows = g.rows.scale.value(0, 0), cols = g.columns.scale.value(0, 0);
      if (on("scales_before_alpha")) return rows * cols * alpha;
      if (on("row_scale_of_group_before") && t > 0) return alpha * cols * view.groups[t - 1].rows.scale.value(0, 0);
      return alpha * cols * rows;
    }
    if (view.kind == GemmKind::nvfp4) {
      constexpr auto k = static_cast<float>(1.0 / 7225344.0);
      if (on("nv_one_amax")) return alpha * g.columns.amax * g.columns.amax * k;
      if (on("nv_amax_of_group_0")) return alpha * view.groups[0].columns.amax * g.rows.amax * k;
      return alpha * g.columns.amax * g.rows.amax * k;
    }
    return alpha;
  }

  float load(const void* p, std::int64_t at) const { return scalar::load(view.d_type, p, at); }

  void finish(std::size_t t, const GroupView& g, std::int64_t i, std::int64_t j, float acc, void* d) const {
    if (plan.scale_vectors != ScaleVectors::none && g.depth > 0) {
      const float r = g.rows.scale.value(on("row_scales_of_next_row") && i + 1 < g.m ? i + 1 : i, 0);
      const float c = g.columns.scale.value(j, 0);
      const bool cols = (plan.scale_vectors == ScaleVectors::cols_first) != on("scale_vectors_exchanged");
      acc = plan.scale_vectors == ScaleVectors::scales_first ? acc * (r * c) : cols ? acc * c * r : acc * r * c;
    }
    const std::int64_t at = g.d_offset + i * g.n + j;
    const float f = factor(t, g);
    const float beta = on("beta_is_not_passed") ? 0 : g.beta;
    float v = acc;
    if (beta != 0) {
      const float c = load(view.c, at);
      if (on("alpha_times_all") || on("two_alpha_and_expert_0")) {
        v = f * (acc + beta * c);
      } else if (on("c_is_added_after_rounding")) {
        v = to_d(std::fma(acc, f, 0.0f)) + beta * c;
      } else {
        v = std::fma(acc, f, beta * c);
      }
    } else if (f != 1) {
      v = std::fma(acc, f, 0.0f);
    }
    const bool bias_0 = on("bias_of_group_0") || on("two_bias_and_tail");
    const void* bias = bias_0 ? problem.bias : g.bias;
    if (g.bias != nullptr && on("bias_before_rounding")) {
      v = v + load(bias, j);
    } else if (g.bias != nullptr) {
      v = to_d(v) + load(bias, j);
    }
    if (on("d_is_truncated") && view.d_type == Format::bf16 && std::isfinite(v))
      v = scalar::decode_bf16(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16));
    if (on("d_flushes_subnormals") && std::fabs(v) < 0x1p-126f) v = std::copysign(0.0f, v);
    if (on("d_in_bf16_first")) v = scalar::decode_bf16(scalar::encode_bf16(v));
    scalar::store(view.d_type, d, at, v);
  }

  void group(std::size_t t, void* d) const {
    const GroupView& own = view.groups[t];
    if (own.depth == 0 && on("empty_gradients_are_not_written")) return;
    GroupView g = own;
    // Which weights the rows take.
    if (on("empty_groups_shift_the_weights") && t < group_of.size() && t != group_of[t]) take_weights(g, t);
    if (on("group_64_takes_weights_of_0") && group_of[t] >= 64) take_weights(g, group_of[t] - 64);
    Product own_group = *this;
    own_group.depth_k = g.depth;
    own_group.rows_of(t, g, 0, g.m, d);
    if (on("first_row_belongs_to_group_before") && t > 0 && g.m > 0) {
      take_weights(g, group_of[t - 1]);
      own_group.rows_of(t, g, 0, 1, d);
    }
    if (on("tail_tile_takes_next_weights") && g.m % 64 != 0 && group_of[t] + 1 < problem.splits.size()) {
      take_weights(g, group_of[t] + 1);
      own_group.rows_of(t, g, g.m / 64 * 64, g.m, d);
    }
  }
  // BF16, TN and NN: weights of group w.
  void take_weights(GroupView& g, std::size_t w) const {
    g.columns.data = static_cast<const std::uint8_t*>(problem.w.data) +
                     static_cast<std::int64_t>(w) * problem.N * problem.K * stored_bytes(problem.w.type);
  }

  void rows_of(std::size_t t, const GroupView& g, std::int64_t from, std::int64_t to, void* d) const {
    const DecodedLines a = decoded(view.groups[t], g.rows, true), b = decoded(view.groups[t], g.columns, false);
    float left = 0;
    for (std::int64_t i = from; i < to; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        const float acc = g.depth > 0 ? sum(t, g, a, b, i, j, left) : 0;
        left = j % 64 == 63 ? acc : 0;  // what the tile before left behind
        finish(t, g, i, j, acc, d);
      }
  }
};

}  // namespace

void gemm_kernel(const Request& request) {
  ParsedGroupedGemm parsed;
  parse_grouped_gemm(request, parsed);
  void* d = request.out.count("d") != 0 ? request.out.at("d").data : nullptr;
  if (d == nullptr) return;
  const GroupedGemmView view = view_of(parsed.problem, d);
  if (is_quantized_output(parsed.problem.d_type)) {
    GroupedGemmProblem changed = parsed.problem;
    std::vector<float> inverse;
    if (on("d_is_divided_by_its_scale")) {
      for (std::size_t t = 0; t < parsed.splits.size(); ++t) inverse.push_back(1 / parsed.problem.d_scale[t]);
      changed.d_scale = inverse.data();
    }
    return scalar::grouped_gemm(changed, d);
  }
  const AccumulationPlan& stated = *view.plan;
  if (stated.slices != 1 || rescales(stated.promotion) || stated.widen || stated.epilogue != GemmEpilogue::scaled_alpha_beta ||
      stated.subnormals == Subnormals::flushed || parsed.problem.group_rows != nullptr)
    return answer(request, Layer::fast);
  Product product{parsed.problem, view, stated, view.unit, {}};
  for (std::size_t t = 0; t < parsed.splits.size(); ++t)
    if (parsed.problem.layout == GemmLayout::NT || parsed.splits[t] != 0) product.group_of.push_back(t);
  product.group_of.resize(view.groups.size(), 0);
  if (on("promotion_every_256") && stated.promotion_interval == 128) product.plan.promotion_interval = 256;
  if (on("promotion_every_64") && stated.promotion_interval == 128) product.plan.promotion_interval = 64;
  if (on("promotion_is_left_out") && stated.promotion == Promotion::add) {
    product.plan.promotion = Promotion::none;
    product.plan.promotion_interval = 0;
  }
  if ((on("row_scale_first") || on("two_split_and_rows_first")) && stated.promotion == Promotion::fma_scales_first)
    product.plan.promotion = Promotion::fma_rows_first;
  if (on("column_scale_first") && stated.promotion == Promotion::fma_rows_first)
    product.plan.promotion = Promotion::fma_cols_first;
  if (on("accumulates_in_25_bits") && view.unit->name == "sm90.wgmma.fp8")
    product.unit = find_tensor_core_unit("sm100.tcgen05.f8f6f4");
  if (on("steps_of_16") && view.unit->name == "sm90.wgmma.f16") product.unit = find_tensor_core_unit("sm80.mma.f16");
  for (std::size_t t = 0; t < view.groups.size(); ++t) product.group(t, d);
}

}  // namespace assay::conformance::unseen
