#include "device/fp8_block_gemm/instances.cuh"

namespace assay::device::fp8_block {

Kernel kernel_of_e5m2_e5m2(const Choice& choice) { return instance_of<Format::e5m2, Format::e5m2>(choice); }

}  // namespace assay::device::fp8_block
