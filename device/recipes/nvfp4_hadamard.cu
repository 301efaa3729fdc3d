// NVFP4 of bf16 whose columns are transformed first.

#include "device/recipes/nvfp4_tile.cuh"

namespace assay::device {

void launch_nvfp4_hadamard(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  tiles.stochastic ? nvfp4::launch_kind<Format::bf16, true, true, false>(tiles, stream)
                   : nvfp4::launch_kind<Format::bf16, true, false, false>(tiles, stream);
}

void launch_nvfp4_hadamard_amax(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  const auto kernel = tiles.aligned ? nvfp4::find_amaxes<true> : nvfp4::find_amaxes<false>;
  kernel<<<tiles.blocks, nvfp4::kThreads, 0, stream>>>(tiles);
  check_launch("nvfp4: find_amaxes");
}

}  // namespace assay::device
