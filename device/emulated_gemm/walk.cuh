#pragma once
// The loop of the fast kernels over a plan (plan.h): stages of K within promotion intervals within slices, and the
// f32 values that live longer than an interval.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/output.cuh"

namespace assay::device::emulated {

// Stages of up to kLength k, through intervals and slices. Slices and intervals without products have no stages.
template <int kLength>
struct Walk {
  int k, interval_end, slice_end;  // this stage begins at k
  int slice, interval_begin;
  bool any;  // there is a stage

  __device__ static int slice_begin(const Arithmetic& plan, int depth, std::int64_t slice) {
    if (plan.slices == 1) return slice == 0 ? 0 : depth;
    return slice > depth / plan.slice_length ? depth : static_cast<int>(slice * plan.slice_length);
  }
  __device__ void enter_slice(const Arithmetic& plan, int depth) {
    k = interval_begin = slice_begin(plan, depth, slice);
    slice_end = slice_begin(plan, depth, static_cast<std::int64_t>(slice) + 1);
    enter_interval(plan);
  }
  __device__ void enter_interval(const Arithmetic& plan) {
    interval_begin = k;
    interval_end = plan.interval == 0 || slice_end - k < plan.interval ? slice_end : k + static_cast<int>(plan.interval);
  }
  __device__ void begin(const Arithmetic& plan, int depth) {
    slice = 0;
    enter_slice(plan, depth);
    any = k < depth;
  }
  __device__ bool ends_interval() const { return k + kLength >= interval_end; }
  __device__ bool ends_slice() const { return ends_interval() && interval_end == slice_end; }
  __device__ void advance(const Arithmetic& plan, int depth) {
    if (!ends_interval()) {
      k += kLength;
    } else if (interval_end < slice_end) {
      k = interval_end;
      enter_interval(plan);
    } else if (slice_end < depth) {
      ++slice;
      enter_slice(plan, depth);
    } else {
      any = false;
    }
  }
};

// Partial sums and sums of slices of a thread's elements, in shared memory: [elements][kThreads] each, if the plan has them.
template <int kThreads>
struct RunningSums {
  float* partials;
  float* totals;
  int slices;  // finished

  static int bytes(const Arithmetic& plan, int elements) {
    const int kinds = (plan.promotion != Promotion::none ? 1 : 0) + (plan.slices > 1 ? 1 : 0);
    return kinds * elements * kThreads * static_cast<int>(sizeof(float));
  }
  __device__ bool any() const { return partials != nullptr || totals != nullptr; }

  __device__ void begin(const Arithmetic& plan, float* memory, int elements) {
    const bool has_partial = plan.promotion != Promotion::none;
    partials = has_partial ? memory + threadIdx.x : nullptr;
    totals = plan.slices > 1 ? memory + (has_partial ? elements * kThreads : 0) + threadIdx.x : nullptr;
    slices = 0;
    for (int e = 0; has_partial && e < elements; ++e) partials[e * kThreads] = 0;
  }

  // Adds the chain's value of element e, at (i, j) of D, at the end of a promotion interval.
  __device__ void end_interval(const GemmCall& call, const Group& group, int e, std::int64_t i, std::int64_t j,
                               std::int64_t interval_begin, bool ends_slice, float chain) {
    const Arithmetic& plan = call.arithmetic;
    float value = __fadd_rn(chain, 0.0f);  // no -0
    if (partials != nullptr) {
      const bool scaled = plan.promotion != Promotion::add;
      const float row_scale = scaled ? scale_value(group.rows, i, interval_begin) : 1.0f;
      const float column_scale = scaled ? scale_value(group.columns, j, interval_begin) : 1.0f;
      value = promoted(plan.promotion, partials[e * kThreads], value, row_scale, column_scale);
    }
    if (totals != nullptr && ends_slice) {
      float& total = totals[e * kThreads];
      total = merged(plan, call.d_type, slices == 0 ? 0.0f : total, value, slices == 0);
      value = 0;
    }
    if (partials != nullptr) partials[e * kThreads] = value;
  }

  // The result of element e; `chain` is the accumulator of a plan of one chain.
  __device__ float result(const GemmCall& call, int e, float chain) const {
    if (totals != nullptr) {
      const float total = slices == 0 ? 0.0f : totals[e * kThreads];
      // Slices past the end of k add +0; adding it once is enough.
      return slices < call.arithmetic.slices ? merged(call.arithmetic, call.d_type, total, 0.0f, slices == 0) : total;
    }
    return partials != nullptr ? partials[e * kThreads] : __fadd_rn(chain, 0.0f);
  }
};

}  // namespace assay::device::emulated
