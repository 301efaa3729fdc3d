// MXFP8 of f32.

#include "device/quantize/mxfp8/launch.cuh"

namespace assay::device {

void launch_mxfp8_f32(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream) {
  mxfp8::launch_output<Format::f32>(tiles, output, stream);
}

}  // namespace assay::device
