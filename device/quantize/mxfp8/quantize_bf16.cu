// MXFP8 of bf16.

#include "device/quantize/mxfp8/launch.cuh"

namespace assay::device {

void launch_mxfp8_bf16(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream) {
  mxfp8::launch_output<Format::bf16>(tiles, output, stream);
}

}  // namespace assay::device
