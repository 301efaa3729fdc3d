#pragma once
// What becomes of the chains of the generic kernel: the value of a slice, the merge of slices, and the last steps to D. All threads
// of a block call these together, since a chain does.

#include <cstdint>

#include "device/emulated_gemm/block.cuh"
#include "device/emulated_gemm/merge_program.h"
#include "device/emulated_gemm/output.cuh"
#include "device/formats/convert.cuh"

namespace assay::device::emulated {

// Scales of the row and the column of an element.
struct LineScales {
  float row, column;
};

// acc of a rescaled chain after an interval, or after the last (spec plans-1.6).
__device__ inline float rescaled(Promotion promotion, float acc, LineScales here, bool last, LineScales next) {
  const float own = __fmul_rn(here.row, here.column);
  if (last) return __fmul_rn(acc, own);
  const float following = __fmul_rn(next.row, next.column);
  return promotion == Promotion::rescale_by_ratio ? __fmul_rn(acc, __fdiv_rn(own, following))
                                                  : __fdiv_rn(__fmul_rn(acc, own), following);
}

// A value that an operation reads or returns, where the plan flushes subnormals: a zero of its sign (spec plans-1.9).
__device__ inline float without_subnormal(float value) {
  const std::uint32_t bits = bits_of_float(value);
  return float_of((bits & 0x7F80'0000u) == 0 ? bits & 0x8000'0000u : bits);
}

__device__ inline float flushed_product(float a, float b) {
  return without_subnormal(__fmul_rn(without_subnormal(a), without_subnormal(b)));
}

// promoted() without subnormals.
__device__ inline float promoted_flushed(Promotion promotion, float partial, float t, LineScales scales) {
  if (promotion == Promotion::none) return t;
  const float sum = without_subnormal(t), acc = without_subnormal(partial);
  if (promotion == Promotion::add) return without_subnormal(__fadd_rn(acc, sum));
  const bool scales_first = promotion == Promotion::fma_scales_first, rows_first = promotion == Promotion::fma_rows_first;
  const float first =
      scales_first ? flushed_product(scales.row, scales.column) : flushed_product(sum, rows_first ? scales.row : scales.column);
  const float second = scales_first ? sum : without_subnormal(rows_first ? scales.column : scales.row);
  return without_subnormal(__fmaf_rn(first, second, acc));
}

// The value of the products [begin, end). `chain(first, last, from)` gives the accumulator after these products; `scales(k)` those
// of the blocks of k.
template <class Chain, class ScalesAt>
__device__ float slice_sum(const Arithmetic& plan, bool flushes, std::int64_t begin, std::int64_t end, Chain&& chain,
                           ScalesAt&& scales) {
  const bool goes_on = plan.promotion == Promotion::rescale_by_ratio || plan.promotion == Promotion::rescale_in_turn;
  const bool scales_inside = plan.promotion != Promotion::none && plan.promotion != Promotion::add;
  const Format chain_type = plan.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32;
  float value = 0;
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t last = plan.interval == 0 || end - first < plan.interval ? end : first + plan.interval;
    const std::uint32_t bits = chain(first, last, goes_on ? bits_of_float(value) : 0u);
    const float t = value_of_code(chain_type, bits);
    const LineScales here = scales_inside ? scales(first) : LineScales{1, 1};
    if (goes_on) {
      value = rescaled(plan.promotion, t, here, last == end, last == end ? here : scales(last));
    } else if (flushes) {
      value = promoted_flushed(plan.promotion, value, t, here);
    } else {
      value = promoted(plan.promotion, value, t, here.row, here.column);
    }
    first = last;
  }
  return value;
}

// The slices of `depth` products as one value: merged one after another, or as the merge program says. `sum_of(begin, end)` is
// slice_sum(); there is one call of it, since all of the kernel is inlined there.
template <class SumOf>
__device__ float sum_of_slices(const GemmCall& call, std::int64_t depth, SumOf&& sum_of) {
  const Arithmetic& plan = call.arithmetic;
  const bool tree = call.terms.merge_steps > 0;
  const auto* program = reinterpret_cast<const std::int16_t*>(call.workspace + call.terms.merge_program);
  const std::int64_t steps = tree ? call.terms.merge_steps : plan.slices;
  float stack[kMergeHeight], total = 0;
  int height = 0;
  for (std::int64_t at = 0; at < steps; ++at) {
    const std::int64_t slice = tree ? program[at] : at;
    if (slice < 0) {
      --height;
      stack[height - 1] = __fadd_rn(stack[height - 1], stack[height]);
      continue;
    }
    const bool whole = plan.slices == 1, beyond = !whole && slice > depth / plan.slice_length;
    const std::int64_t begin = whole ? 0 : beyond ? depth : slice * plan.slice_length;
    const std::int64_t end = whole || depth - begin < plan.slice_length ? depth : begin + plan.slice_length;
    const float value = sum_of(begin, end);
    if (tree) {
      stack[height++] = value;
      continue;
    }
    total = merged(plan, call.d_type, total, value, slice == 0);
    if (begin == end) break;  // later slices add +0 again, which changes nothing
  }
  return tree ? stack[0] : total;
}

// The running value times the scales of its row and its column (spec grouped-gemm-2.2).
__device__ inline float with_vectors(ScaleVectors order, bool flushes, const Group& group, std::int64_t i, std::int64_t j,
                                     float acc) {
  if (order == ScaleVectors::none) return acc;
  const float row = scale_value(group.rows, i, 0), column = scale_value(group.columns, j, 0);
  if (flushes) {
    if (order == ScaleVectors::scales_first) return flushed_product(acc, flushed_product(row, column));
    const bool rows_first = order == ScaleVectors::rows_first;
    return flushed_product(flushed_product(acc, rows_first ? row : column), rows_first ? column : row);
  }
  if (order == ScaleVectors::rows_first) return __fmul_rn(__fmul_rn(acc, row), column);
  if (order == ScaleVectors::cols_first) return __fmul_rn(__fmul_rn(acc, column), row);
  return __fmul_rn(acc, __fmul_rn(row, column));
}

// What D adds onto C, or is rounded from: acc times the factor.
__device__ inline float with_factor(const Group& group, float acc) {
  return group.factor == 1 ? acc : __fmaf_rn(acc, group.factor, 0.0f);
}

// Added onto C in memory (spec grouped-gemm-2.6).
__device__ inline void add_in_memory(const Group& group, bool flushes, std::int64_t at, float acc) {
  const float c = static_cast<const float*>(group.c)[at];
  const auto kept = [&](float value) {
    const std::uint32_t bits = bits_of_float(value);
    return flushes && (bits & 0x7F80'0000u) == 0 ? float_of(bits & 0x8000'0000u) : value;
  };
  const float sum = group.depth == 0 ? c : kept(__fadd_rn(kept(c), kept(with_factor(group, acc))));
  store_code(Format::f32, group.d, at, code_of_value(Format::f32, sum));
}

// D in FP8 (spec grouped-gemm-2.7).
__device__ inline void write_fp8(const Group& group, Format d_type, float d_scale, std::int64_t at, float acc) {
  const float scaled = __fmul_rn(with_factor(group, acc), d_scale);
  static_cast<std::uint8_t*>(group.d)[at] =
      d_type == Format::e4m3 ? encode_fp8<Format::e4m3>(scaled) : encode_fp8<Format::e5m2>(scaled);
}

// D[i][j] of this block's group.
__device__ inline void finish_element(const GemmCall& call, const Group& group, std::int64_t i, std::int64_t j, float sum) {
  const float acc = group.depth > 0 ? with_vectors(call.terms.scale_vectors, call.terms.flushes, group, i, j, sum) : 0.0f;
  const std::int64_t at = i * group.n + j;
  if (call.terms.epilogue != GemmEpilogue::scaled_alpha_beta) {
    add_in_memory(group, call.terms.epilogue == GemmEpilogue::reduce_add_ftz, at, acc);
  } else if (call.d_type == Format::e4m3 || call.d_type == Format::e5m2) {
    const float* scales = reinterpret_cast<const float*>(call.workspace + WorkspaceLayout(call.groups).d_scales);
    write_fp8(group, call.d_type, scales[group_of_tile(call, blockIdx.x)], at, acc);
  } else {
    write_element(group, call.d_type, i, j, acc);
  }
}

}  // namespace assay::device::emulated
