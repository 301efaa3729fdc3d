// NVFP4 of f16.

#include "device/quantize/nvfp4/launch.cuh"

namespace assay::device {

void launch_nvfp4_f16(const Nvfp4Tiles& tiles, cudaStream_t stream) { nvfp4::launch_plain<Format::f16>(tiles, stream); }

}  // namespace assay::device
