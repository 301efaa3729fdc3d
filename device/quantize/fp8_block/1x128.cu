// FP8 block scaling with a scale for 128 elements of a row (rowwise) or of a column (columnwise).

#include "device/quantize/fp8_block/launch.cuh"

namespace assay::device {

void launch_fp8_block_1x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream) {
  fp8_block::launch_types<false>(tiles, x_type, output, stream);
}

}  // namespace assay::device
