// NVFP4 of bf16.

#include "device/quantize/nvfp4/launch.cuh"

namespace assay::device {

void launch_nvfp4_bf16(const Nvfp4Tiles& tiles, cudaStream_t stream) { nvfp4::launch_plain<Format::bf16>(tiles, stream); }

}  // namespace assay::device
