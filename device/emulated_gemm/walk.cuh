#pragma once
// The parts of a plan that the fast kernels walk through (plan.h): stages of K within stretches within slices, and the
// f32 values that outlive a stretch.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/output.cuh"

namespace assay::device::emulated {

// Stages of up to kLength k: through stretches, through slices. Slices and stretches without products are no stages.
template <int kLength>
struct Walk {
  int k, stretch_end, slice_end;   // this stage begins at k
  int slice, stretch_begin;
  bool any;                        // there is a stage

  __device__ static int slice_begin(const Arithmetic& plan, int depth, std::int64_t slice) {
    if (plan.slices == 1) return slice == 0 ? 0 : depth;
    return slice > depth / plan.slice_length ? depth : static_cast<int>(slice * plan.slice_length);
  }
  __device__ void enter_slice(const Arithmetic& plan, int depth) {
    k = stretch_begin = slice_begin(plan, depth, slice);
    slice_end = slice_begin(plan, depth, static_cast<std::int64_t>(slice) + 1);
    enter_stretch(plan);
  }
  __device__ void enter_stretch(const Arithmetic& plan) {
    stretch_begin = k;
    stretch_end =
        plan.interval == 0 || slice_end - k < plan.interval ? slice_end : k + static_cast<int>(plan.interval);
  }
  __device__ void begin(const Arithmetic& plan, int depth) {
    slice = 0;
    enter_slice(plan, depth);
    any = k < depth;
  }
  __device__ bool ends_stretch() const { return k + kLength >= stretch_end; }
  __device__ bool ends_slice() const { return ends_stretch() && stretch_end == slice_end; }
  __device__ void advance(const Arithmetic& plan, int depth) {
    if (!ends_stretch()) {
      k += kLength;
    } else if (stretch_end < slice_end) {
      k = stretch_end;
      enter_stretch(plan);
    } else if (slice_end < depth) {
      ++slice;
      enter_slice(plan, depth);
    } else {
      any = false;
    }
  }
};

// Partial sums and sums of slices of a thread's elements, in shared memory: [elements][kThreads] each, where the plan
// has such a thing.
template <int kThreads>
struct Kept {
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

  // The chain's value of element e, at (i, j) of D, after a stretch.
  __device__ void end_stretch(const GemmCall& call, const Group& group, int e, std::int64_t i, std::int64_t j,
                              std::int64_t stretch_begin, bool ends_slice, float chain) {
    const Arithmetic& plan = call.arithmetic;
    float value = __fadd_rn(chain, 0.0f);  // no -0
    if (partials != nullptr) {
      const bool scaled = plan.promotion != Promotion::add;
      const float row_scale = scaled ? scale_value(group.rows, i, stretch_begin) : 1.0f;
      const float column_scale = scaled ? scale_value(group.columns, j, stretch_begin) : 1.0f;
      value = promoted(plan.promotion, partials[e * kThreads], value, row_scale, column_scale);
    }
    if (totals != nullptr && ends_slice) {
      float& total = totals[e * kThreads];
      total = merged(plan, call.d_type, slices == 0 ? 0.0f : total, value, slices == 0);
      value = 0;
    }
    if (partials != nullptr) partials[e * kThreads] = value;
  }

  // What the plan makes of element e; `chain` is the accumulator of a plan of one chain.
  __device__ float result(const GemmCall& call, int e, float chain) const {
    if (totals != nullptr) {
      const float total = slices == 0 ? 0.0f : totals[e * kThreads];
      // Slices past the end of k add +0; a second one changes nothing more.
      return slices < call.arithmetic.slices ? merged(call.arithmetic, call.d_type, total, 0.0f, slices == 0) : total;
    }
    return partials != nullptr ? partials[e * kThreads] : __fadd_rn(chain, 0.0f);
  }
};

}  // namespace assay::device::emulated
