#include "device/fp8_block_gemm/instances.cuh"

namespace assay::device::fp8_block {

Kernel kernel_of_e4m3_e5m2(const Choice& choice) { return instance_of<Format::e4m3, Format::e5m2>(choice); }

}  // namespace assay::device::fp8_block
