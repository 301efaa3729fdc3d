// Scale updates. The numbers are few: the launch takes most of the time.
//
//   matches   reference/recipes/delayed_scaling.h, reference/recipes/per_tensor.h

#include "device/quantize/delayed_scaling.h"

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "device/formats/convert.cuh"
#include "device/quantize/group_amax.h"
#include "device/support/call_checks.h"
#include "device/support/call_device.h"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {
namespace {

// A block updates 32 tensors, side by side in a row of the history; 32 warps take the rows cyclically.
constexpr int kTensors = 32, kWarps = 32;
constexpr int kRowsOfWarp = 8;
constexpr std::int64_t kWindow = std::int64_t{kWarps} * kRowsOfWarp;  // rows between two barriers

// The history moves up by one row, in place perhaps: all rows of a window, and the one after it, are read before any of
// them is written, and no later window reads them.
__global__ void __launch_bounds__(kTensors* kWarps) update(const DelayedUpdateCall call, float scaled_max) {
  __shared__ float largest_of_warp[kWarps][kTensors];
  const int lane = static_cast<int>(threadIdx.x) % kTensors, warp = static_cast<int>(threadIdx.x) / kTensors;
  const std::int64_t i = std::int64_t{blockIdx.x} * kTensors + lane, count = call.count, length = call.length;
  const bool present = i < count;

  float last = 0;
  bool rolls = false;
  if (present) {
    const float reduced = call.reduced != nullptr ? call.reduced[i] : 0.0f;
    last = reduced != 0 ? reduced : call.history[i];
    rolls = !call.bulk || last != 0;  // the bulk form leaves out tensors without an amax; NaN is one
  }

  float largest = 0;
  __syncthreads();  // `last` is read before row 0 is cleared
  for (std::int64_t window = 0; window < length; window += kWindow) {
    float next[kRowsOfWarp];
#pragma unroll
    for (int k = 0; k < kRowsOfWarp; ++k) {
      const std::int64_t row = window + k * kWarps + warp, from = rolls ? row + 1 : row;
      next[k] = present && row < length ? (from < length ? call.history[from * count + i] : last) : 0.0f;
      if (rolls && next[k] > largest) largest = next[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kRowsOfWarp; ++k) {
      const std::int64_t row = window + k * kWarps + warp;
      if (present && row < length) call.new_history[row * count + i] = rolls && row == 0 ? 0.0f : next[k];
    }
  }

  largest_of_warp[warp][lane] = largest;
  __syncthreads();
  if (warp != 0 || !present) return;
  for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, largest_of_warp[w][lane]);
  const float amax = call.config.algorithm == AmaxAlgorithm::most_recent ? last : largest;
  const bool usable = amax > 0 && bits_of_float(amax) < kF32Infinity;
  std::uint32_t scale = bits_of_float(usable ? divide(scaled_max, amax) : call.scale[i]);
  if ((scale & kF32Magnitude) == kF32Infinity) scale = 0x7F7F'FFFFu;  // FLT_MAX
  call.new_scale[i] = float_of_bits(scale);
}

constexpr int kScaleThreads = 256;

__global__ void __launch_bounds__(kScaleThreads) scales_of(const float* amax, int groups, float max, bool pow2, float epsilon,
                                                           const float* noop, float* scale, float* scale_inv) {
  if (is_skipped(noop)) return;
  const int t = static_cast<int>(blockIdx.x * kScaleThreads + threadIdx.x);
  if (t >= groups) return;
  const float value = scale_from_amax(bits_of_float(amax[t]), max, pow2, epsilon, 0x7F7F'FFFFu);
  if (scale != nullptr) scale[t] = value;
  if (scale_inv != nullptr) scale_inv[t] = stored_float(reciprocal(value));
}

float largest_code(Format output) { return output == Format::e4m3 ? Fp8<Format::e4m3>::kMax : Fp8<Format::e5m2>::kMax; }

void check_fp8(Format output) {
  if (!is_fp8(output)) require(false, "output", format_name(output), "e4m3 or e5m2");
}

// The two are the same memory or do not overlap.
void check_apart(const float* from, const float* to, std::int64_t elements, const char* argument) {
  const auto a = reinterpret_cast<std::uintptr_t>(from), b = reinterpret_cast<std::uintptr_t>(to);
  const auto bytes = static_cast<std::uintptr_t>(elements) * sizeof(float);
  if (a != b && a < b + bytes && b < a + bytes) {
    require(false, argument, "overlapping", "the memory that it is made from, or memory apart from it");
  }
}

void check_update(const DelayedUpdateCall& call) {
  check_fp8(call.config.output);
  if (call.config.algorithm > AmaxAlgorithm::most_recent) {
    require(false, "algorithm", static_cast<std::int64_t>(call.config.algorithm), "max (0) or most_recent (1)");
  }
  if (call.config.margin < -1000 || call.config.margin > 1000) {
    require(false, "margin", std::int64_t{call.config.margin}, "a value from -1000 to 1000");
  }
  if (call.length < 1) require(false, "length", call.length, "a value of at least 1");
  if (call.count < 0) require(false, "count", call.count, "a value of at least 0");
  std::int64_t entries, bytes;
  if (__builtin_mul_overflow(call.length, call.count, &entries) || __builtin_mul_overflow(entries, 4, &bytes)) {
    require(false, "length", call.length, "a number of elements that fits int64");
  }
  if (call.reduced != nullptr && !call.bulk) require(false, "reduced", "given", "null: only the bulk form takes it");
  check_alignment(call.reduced, "reduced", 4);
  if (call.count == 0) return;
  if (call.count > std::int64_t{1} << 31) {
    throw NotSupported("count is " + std::to_string(call.count) + ": at most 2^31 tensors are supported");
  }
  require_pointer(call.history, "history", 4);
  require_pointer(call.scale, "scale", 4);
  require_pointer(call.new_history, "new_history", 4);
  require_pointer(call.new_scale, "new_scale", 4);
  check_apart(call.history, call.new_history, entries, "new_history");
  check_apart(call.scale, call.new_scale, call.count, "new_scale");
}

}  // namespace

void update_delayed_scaling(const DelayedUpdateCall& call, Stream stream) {
  check_update(call);
  if (call.count == 0) return;
  const CallDevice device(
      stream,
      {{"history", call.history}, {"scale", call.scale}, {"new_history", call.new_history}, {"new_scale", call.new_scale}});
  const float power = static_cast<float>(std::ldexp(1.0, -call.config.margin));
  const auto blocks = static_cast<unsigned>((call.count + kTensors - 1) / kTensors);
  launch_kernel("delayed_scaling: update", update, blocks, kTensors * kWarps, 0, stream, call,
                largest_code(call.config.output) * power);
}

void grouped_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop, float* amax,
                  std::uint32_t* status, Stream stream) {
  check_wide(x_type, "x_type");
  check_matrix(rows, columns);
  if (rows.capacity != 0 && columns != 0) require_pointer(x, "x", static_cast<std::uintptr_t>(wide_bytes(x_type)));
  check_alignment(noop, "noop", 4);
  check_alignment(status, "status", 4);
  if (rows.groups == 0) return;
  require_pointer(amax, "amax", 4);
  const CallDevice device(stream, {{"amax", amax}, {"x", x}, {"rows.splits", rows.splits}, {"status", status}});
  launch_group_amax(x_type, x, rows, columns, noop, reinterpret_cast<std::uint32_t*>(amax), status, stream);
}

void scale_from_amax(const float* amax, int groups, Format output, bool pow2, float epsilon, const float* noop, float* scale,
                     float* scale_inv, Stream stream) {
  check_fp8(output);
  if (groups < 0) require(false, "groups", std::int64_t{groups}, "a value of at least 0");
  if (!(epsilon >= 0)) require(false, "epsilon", shown(epsilon), "a value of at least 0");
  check_alignment(noop, "noop", 4);
  check_alignment(scale, "scale", 4);
  check_alignment(scale_inv, "scale_inv", 4);
  if (groups == 0 || (scale == nullptr && scale_inv == nullptr)) return;
  require_pointer(amax, "amax", 4);
  const CallDevice device(stream, {{"amax", amax}, {"scale", scale}, {"scale_inv", scale_inv}});
  const auto blocks = static_cast<unsigned>((std::int64_t{groups} + kScaleThreads - 1) / kScaleThreads);
  launch_kernel("delayed_scaling: scales_of", scales_of, blocks, kScaleThreads, 0, stream, amax, groups, largest_code(output),
                pow2, epsilon, noop, scale, scale_inv);
}

}  // namespace assay::device
