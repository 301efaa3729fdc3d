#pragma once
// Whether a product breaks the promise that its scales are powers of two, in memory of the host.

#include <cstdint>
#include <span>

#include "conformance/backends/device/pow2_scales.h"
#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "reference/layout/scale_shape.h"

namespace assay::device_linear_suite {

inline bool breaks_scale_promise(const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings) {
  if (!device::relies_on_pow2_scales(call, settings)) return false;
  const std::span splits(call.rows.splits, static_cast<std::size_t>(call.rows.groups));
  std::int64_t left = call.rows.capacity;
  for (const std::int64_t rows : splits) {
    if (rows < 0 || rows > left) return false;  // wrong splits: another fault
    left -= rows;
  }
  const auto are_pow2 = [&](const device::GemmOperand& operand, std::int64_t columns) {
    const std::int64_t count = scale_offsets(Recipe::block_1x128, Direction::columnwise, splits, columns).back();
    return conformance::are_pow2_scales({static_cast<const float*>(operand.scale_inv), static_cast<std::size_t>(count)}, splits,
                                        columns);
  };
  return !(are_pow2(call.dy, call.N) && are_pow2(call.x, call.K));
}

}  // namespace assay::device_linear_suite
