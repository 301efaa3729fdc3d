// FP8 block scaling with a scale for a tile of 128 x 128.

#include "device/quantize/fp8_block/launch.cuh"

namespace assay::device {

void launch_fp8_block_128x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream) {
  fp8_block::launch_types<true>(tiles, x_type, output, stream);
}

}  // namespace assay::device
