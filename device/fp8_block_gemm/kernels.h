#pragma once
// The kernels that are compiled: types of A and B, scaling, blocks of a cluster. Internal to this folder.

#include "device/fp8_block_gemm/problem.h"

namespace assay::device::fp8_block {

struct Kernel {
  void (*function)(Problem) = nullptr;
  int shared_bytes = 0;
};

struct Choice {
  Scaling scaling = Scaling::squares;
  Contraction contraction = Contraction::even;
  int cluster = 1;  // squares: 1 or 2; vectors: 1, of ragged contractions 2
};
Kernel kernel_of_e4m3_e4m3(const Choice& choice);
Kernel kernel_of_e4m3_e5m2(const Choice& choice);
Kernel kernel_of_e5m2_e4m3(const Choice& choice);
Kernel kernel_of_e5m2_e5m2(const Choice& choice);

}  // namespace assay::device::fp8_block
