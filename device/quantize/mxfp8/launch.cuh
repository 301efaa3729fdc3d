#pragma once
// MXFP8 of one type of x: the kernel that the call has chosen.

#include "device/quantize/mxfp8/quantize_blocks.cuh"
#include "device/quantize/mxfp8/quantize_rows.cuh"
#include "device/quantize/mxfp8/quantize_tiles.cuh"

namespace assay::device::mxfp8 {

template <Format X, Format F>
void launch_way(const Mxfp8Tiles& tiles, cudaStream_t stream) {
  if constexpr (Element<X>::kBytes == 2) {
    if (tiles.variant == Mxfp8Variant::rows) return launch_rows<X, F>(tiles, stream);
    if (tiles.variant == Mxfp8Variant::blocks) return launch_blocks<X, F>(tiles, stream);
  }
  launch_parts<X, F>(tiles, stream);
}

template <Format X>
void launch_output(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream) {
  output == Format::e4m3 ? launch_way<X, Format::e4m3>(tiles, stream) : launch_way<X, Format::e5m2>(tiles, stream);
}

}  // namespace assay::device::mxfp8
