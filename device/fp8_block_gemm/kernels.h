#pragma once
// The kernels that are compiled: types of A and B, scaling, blocks of a cluster. Internal to this folder.

#include "device/fp8_block_gemm/problem.h"

namespace assay::device::fp8_block {

struct Kernel {
  void (*function)(Problem) = nullptr;
  int shared_bytes = 0;
};

// `cluster`: 1, or 2 with Scaling::squares.
Kernel kernel_of_e4m3_e4m3(Scaling scaling, int cluster);
Kernel kernel_of_e4m3_e5m2(Scaling scaling, int cluster);
Kernel kernel_of_e5m2_e4m3(Scaling scaling, int cluster);
Kernel kernel_of_e5m2_e5m2(Scaling scaling, int cluster);

}  // namespace assay::device::fp8_block
