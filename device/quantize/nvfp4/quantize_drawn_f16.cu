// NVFP4 of f16 with stochastic rounding by random bytes that are drawn.

#include "device/quantize/nvfp4/launch.cuh"

namespace assay::device {

void launch_nvfp4_drawn_f16(const Nvfp4Tiles& tiles, cudaStream_t stream) { nvfp4::launch_drawn<Format::f16>(tiles, stream); }

}  // namespace assay::device
