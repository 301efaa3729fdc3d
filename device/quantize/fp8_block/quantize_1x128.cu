// Instantiates the kernels of FP8 block scaling for 1x128 blocks. The kernels are in quantize_rows.cuh, quantize_tiles.cuh,
// quantize_stacks.cuh and quantize_wide.cuh.

#include "device/quantize/fp8_block/launch.cuh"

namespace assay::device {

void launch_fp8_block_1x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream) {
  fp8_block::launch_types<false>(tiles, x_type, output, stream);
}

}  // namespace assay::device
