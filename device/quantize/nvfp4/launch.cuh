#pragma once
// NVFP4 of one type of x: the kernel that the call has chosen.

#include "device/quantize/nvfp4/quantize_rows.cuh"
#include "device/quantize/nvfp4/quantize_tiles.cuh"
#include "device/support/early_launch.cuh"

#if defined(__CUDACC__)

namespace assay::device::nvfp4 {

template <Format X, bool kHadamard, Rounding kRounding, bool kFourOverSix>
void launch_tiles(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  const bool rows = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  void (*kernel)(Nvfp4Tiles) = quantize_tiles<X, kHadamard, kRounding, kFourOverSix, false, kRowPart | kColumnPart>;
  if (tiles.aligned) {
    kernel = rows ? quantize_tiles<X, kHadamard, kRounding, kFourOverSix, true, kRowPart | kColumnPart>
                  : quantize_tiles<X, kHadamard, kRounding, kFourOverSix, true, kColumnPart>;
  }
  launch_kernel_early("nvfp4: quantize_tiles", kernel, tiles.blocks, kThreads, 0, stream, tiles);
}

template <Format X, bool kHadamard, bool kStochastic, bool kFourOverSix>
void launch_kind(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  if constexpr (Element<X>::kBytes == 2 && !kHadamard && !kFourOverSix) {
    if (tiles.variant == Nvfp4Variant::rows) return launch_rows<X, kStochastic>(tiles, stream);
  }
  launch_tiles<X, kHadamard, kStochastic ? Rounding::stochastic : Rounding::nearest, kFourOverSix>(tiles, stream);
}

template <Format X>
void launch_plain(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  tiles.four_over_six ? launch_kind<X, false, false, true>(tiles, stream)
  : tiles.stochastic  ? launch_kind<X, false, true, false>(tiles, stream)
                      : launch_kind<X, false, false, false>(tiles, stream);
}

// Stochastic, by random bytes that are drawn.
template <Format X>
void launch_drawn(const Nvfp4Tiles& tiles, cudaStream_t stream) {
  launch_tiles<X, false, Rounding::drawn, false>(tiles, stream);
}

}  // namespace assay::device::nvfp4

#endif  // __CUDACC__
