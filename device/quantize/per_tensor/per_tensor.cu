// FP8 with one scale for each group, given (delayed scaling) or from the group's amax (current scaling): a call
// as launches of the kernels of run_through.cu, cast_tiles.cu and cast_windows.cu.
//
//   launches  current scaling: clear the amaxes, accumulate them, cast. Delayed: the cast alone; its amax output adds the
//             clearing
//   L2        current scaling reads x upward for the amax and downward for the cast: the part read last is still in L2
//   matches   reference/recipes/per_tensor.h

#include <cuda_runtime.h>

#include <cstdint>

#include "device/dbias/dbias_tiles.h"
#include "device/layout/check_rows.h"
#include "device/layout/group_table.cuh"
#include "device/quantize/group_amax.h"
#include "device/quantize/per_tensor/cast.cuh"
#include "device/quantize/quantize.h"
#include "device/support/launch.cuh"
#include "device/support/noop.cuh"

namespace assay::device {
namespace {

using per_tensor::CastArguments;
using per_tensor::TensorScales;

// One block: the start of a call that accumulates amaxes, and a call without elements.
__global__ void __launch_bounds__(1024)
    clear_amaxes(const Rows rows, const float* noop, std::uint32_t* status, std::uint32_t* amax_bits) {
  if (is_skipped(noop)) return;
  __shared__ GroupTable<> table;
  if (rows.splits != nullptr && !table.build(rows, status)) return;
  for (int t = static_cast<int>(threadIdx.x); t < rows.groups; t += 1024) amax_bits[t] = 0;
}

__global__ void __launch_bounds__(1024) scales_alone(const Rows rows, const float* noop, std::uint32_t* status,
                                                     const TensorScales scales, float* scale, float* scale_inv) {
  if (is_skipped(noop)) return;
  __shared__ GroupTable<> table;
  if (rows.splits != nullptr && !table.build(rows, status)) return;
  per_tensor::write_scales(scales, rows.groups, scale, scale_inv);
}

constexpr std::int64_t kAmaxBytes = std::int64_t{kMaxGroups} * 4;

}  // namespace

void launch_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                       std::uint32_t* amax_bits, std::uint32_t* status, Stream stream) {
  if (rows.groups == 0) return;
  launch_kernel("per_tensor: clear_amaxes", clear_amaxes, 1, 1024, 0, stream, rows, noop, status, amax_bits);
  accumulate_group_amax(x_type, x, rows, columns, noop, amax_bits, status, stream);
}

void accumulate_group_amax(Format x_type, const void* x, const Rows& rows, std::int64_t columns, const float* noop,
                           std::uint32_t* amax_bits, std::uint32_t* status, Stream stream) {
  if (rows.capacity == 0 || columns == 0) return;
  CastArguments a{};
  a.x = x;
  a.rows = rows;
  a.columns = columns;
  a.noop = noop;
  a.status = status;
  a.amax_bits = amax_bits;
  a.vectors = is_aligned(x, 16);
  per_tensor::launch_amax(x_type, a, stream);
}

std::int64_t per_tensor_workspace_bytes(const QuantizeCall& call) {
  const std::int64_t amax = call.config.recipe == Recipe::tensor_current ? kAmaxBytes : 0;
  return amax + (call.config.dbias ? dbias_workspace_bytes(dbias_of(call)) : 0);
}

void quantize_per_tensor(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  const bool current = config.recipe == Recipe::tensor_current;
  if (call.rows.groups == 0) return;

  CastArguments a{};
  a.x = call.x;
  a.rows = call.rows;
  a.columns = call.columns;
  a.noop = call.noop;
  a.status = call.status;
  a.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  a.rowwise = config.rowwise ? static_cast<std::uint8_t*>(output.rowwise_data) : nullptr;
  a.columnwise = config.columnwise ? static_cast<std::uint8_t*>(output.columnwise_data) : nullptr;
  a.scale_inv = static_cast<float*>(output.rowwise_scale_inv);
  a.scale = current ? output.scale : nullptr;
  a.scales.max = config.output == Format::e4m3 ? Fp8<Format::e4m3>::kMax : Fp8<Format::e5m2>::kMax;
  a.scales.epsilon = config.amax_epsilon;
  a.scales.pow2 = config.force_pow_2_scales;
  a.reversed = current;

  auto* workspace = static_cast<std::uint8_t*>(call.workspace);
  auto* amax_bits = reinterpret_cast<std::uint32_t*>(output.amax);
  if (current) {
    if (amax_bits == nullptr) amax_bits = reinterpret_cast<std::uint32_t*>(workspace);
    workspace += kAmaxBytes;
    a.scales.in_memory = amax_bits;
  } else {
    a.scales.in_memory = reinterpret_cast<const std::uint32_t*>(call.scale);
    a.scales.given = true;
  }
  const bool sums = config.dbias && output.dbias != nullptr;
  if (sums) a.tile_sums = reinterpret_cast<float*>(workspace);

  const bool elements = call.rows.capacity != 0 && call.columns != 0;
  const bool casts = elements && (a.rowwise != nullptr || a.columnwise != nullptr || sums);
  if (current || (amax_bits != nullptr && !casts)) {
    launch_group_amax(call.x_type, call.x, call.rows, call.columns, call.noop, amax_bits, call.status, stream);
  } else if (amax_bits != nullptr) {  // accumulated by the cast
    launch_kernel("per_tensor: clear_amaxes", clear_amaxes, 1, 1024, 0, stream, call.rows, call.noop, call.status, amax_bits);
    a.amax_bits = amax_bits;
  }

  if (casts) {
    const int span = call.x_type == Format::f32 ? 4 : 8;
    const bool tiles = a.columnwise != nullptr || sums;
    a.vectors =
        is_aligned(a.x, 16) && is_aligned(a.rowwise, static_cast<std::uintptr_t>(span)) && (!tiles || call.columns % span == 0);
    const bool whole_columns = a.columnwise == nullptr || (is_aligned(a.columnwise, 16) && a.rows.capacity % 16 == 0);
    const auto launch = !tiles                                      ? per_tensor::launch_run_through
                        : a.rows.splits == nullptr && whole_columns ? per_tensor::launch_tiles
                                                                    : per_tensor::launch_windows;
    launch(call.x_type, config.output, a, stream);
  } else if (a.scale != nullptr || a.scale_inv != nullptr) {
    launch_kernel("per_tensor: scales_alone", scales_alone, 1, 1024, 0, stream, a.rows, a.noop, a.status, a.scales, a.scale,
                  a.scale_inv);
  }
  if (sums) finish_dbias(dbias_of(call), a.tile_sums, call.noop, stream);
}

}  // namespace assay::device
