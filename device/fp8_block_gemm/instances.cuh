#pragma once
// The kernels of one pair of types. Each pair is a source of its own, so that they compile side by side. Internal to this folder.

#include "device/fp8_block_gemm/kernel.cuh"
#include "device/fp8_block_gemm/kernels.h"

namespace assay::device::fp8_block {

template <Format kA, Format kB, Scaling kScaling, int kCluster>
Kernel instance() {
  using C = Config<kA, kB, kScaling, kCluster>;
  static_assert(sizeof(Shared<C>) <= 227 * 1024, "shared memory of a block of SM90");
  return {&multiply_groups<C>, static_cast<int>(sizeof(Shared<C>))};
}

template <Format kA, Format kB>
Kernel instance_of(Scaling scaling, int cluster) {
  switch (scaling) {
    case Scaling::squares:
      return cluster == 2 ? instance<kA, kB, Scaling::squares, 2>() : instance<kA, kB, Scaling::squares, 1>();
    case Scaling::vectors: return instance<kA, kB, Scaling::vectors, 1>();
    default: return instance<kA, kB, Scaling::vectors_rows_first, 1>();
  }
}

}  // namespace assay::device::fp8_block
