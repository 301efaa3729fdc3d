#pragma once
// The kernels of one pair of types. Each pair is a source of its own, so that they compile side by side. Internal to this folder.

#include "device/fp8_block_gemm/kernel.cuh"
#include "device/fp8_block_gemm/kernels.h"

namespace assay::device::fp8_block {

template <Format kA, Format kB, Scaling kScaling, Contraction kContraction, int kCluster>
Kernel instance() {
  using C = Config<kA, kB, kScaling, kContraction, kCluster>;
  static_assert(sizeof(Shared<C>) <= 227 * 1024, "shared memory of a block of SM90");
  return {&multiply_groups<C>, static_cast<int>(sizeof(Shared<C>))};
}

template <Format kA, Format kB>
Kernel instance_of(const Choice& choice) {
  if (choice.contraction == Contraction::ragged) {
    if (choice.scaling == Scaling::vectors) return instance<kA, kB, Scaling::vectors, Contraction::ragged, 2>();
    if (choice.scaling == Scaling::pow2_vectors) return instance<kA, kB, Scaling::pow2_vectors, Contraction::ragged, 2>();
    return instance<kA, kB, Scaling::vectors_rows_first, Contraction::ragged, 2>();
  }
  switch (choice.scaling) {
    case Scaling::squares:
      return choice.cluster == 2 ? instance<kA, kB, Scaling::squares, Contraction::even, 2>()
                                 : instance<kA, kB, Scaling::squares, Contraction::even, 1>();
    case Scaling::vectors: return instance<kA, kB, Scaling::vectors, Contraction::even, 1>();
    default: return instance<kA, kB, Scaling::vectors_rows_first, Contraction::even, 1>();
  }
}

}  // namespace assay::device::fp8_block
