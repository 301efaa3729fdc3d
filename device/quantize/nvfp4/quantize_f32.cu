// NVFP4 of f32.

#include "device/quantize/nvfp4/launch.cuh"

namespace assay::device {

void launch_nvfp4_f32(const Nvfp4Tiles& tiles, cudaStream_t stream) { nvfp4::launch_plain<Format::f32>(tiles, stream); }

}  // namespace assay::device
