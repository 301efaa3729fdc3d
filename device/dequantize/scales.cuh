#pragma once
// The factors of codes, by recipe and direction: where the scale of an element lies, and its value.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/dequantize/dequantize.h"
#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"

namespace assay::device::dequantization {

struct TensorScaleLayout {  // one scale per group
  using Measure = RowCount;
};
template <Recipe kRecipe, Direction kDirection>
struct LayoutOf {
  using Type = ScaleLayoutOf<kRecipe, kDirection>;
};
template <Direction kDirection>
struct LayoutOf<Recipe::tensor_current, kDirection> {
  using Type = TensorScaleLayout;
};

// Factor of element (r, c) of a group: the value of its scale.
template <Recipe kRecipe, Direction kDirection>
struct Scales {
  using Layout = typename LayoutOf<kRecipe, kDirection>::Type;
  const void* first = nullptr;  // of the group
  std::int64_t pitch = 0, tiles_j = 0;
  bool swizzled = false;
  float tensor_amax = 0, nvfp4_factor = 0;

  // Of a group: its number, its rows, and the sum of the layout's measure over the groups before.
  __device__ Scales(const DequantizeCall& call, std::uint32_t group, std::uint32_t rows, std::uint32_t before, float factor)
      : nvfp4_factor(factor) {
    if constexpr (kRecipe == Recipe::tensor_current) {
      first = static_cast<const float*>(call.scale_inv) + group;
    } else {
      const std::int64_t elements = Layout::factor(call.columns) * before;
      pitch = Layout::pitch(rows, call.columns);
      if constexpr (kRecipe == Recipe::mxfp8 || kRecipe == Recipe::nvfp4) {
        first = static_cast<const std::uint8_t*>(call.scale_inv) + elements;
        tiles_j = Layout::tiles_j(rows, call.columns);
        swizzled = call.scale_layout == ScaleLayout::swizzled;
        if constexpr (kRecipe == Recipe::nvfp4) tensor_amax = __ldg(call.amax + group);
      } else {
        first = static_cast<const float*>(call.scale_inv) + elements;
      }
    }
  }

  __device__ float of(std::uint32_t r, std::uint32_t c) const {
    constexpr bool kRowwise = kDirection == Direction::rowwise;
    if constexpr (kRecipe == Recipe::tensor_current) {
      return __ldg(static_cast<const float*>(first));
    } else if constexpr (kRecipe == Recipe::block_1x128) {
      return __ldg(static_cast<const float*>(first) + (kRowwise ? c / 128 * pitch + r : r / 128 * pitch + c));
    } else if constexpr (kRecipe == Recipe::block_128x128) {
      return __ldg(static_cast<const float*>(first) + (kRowwise ? r / 128 * pitch + c / 128 : c / 128 * pitch + r / 128));
    } else {
      constexpr std::uint32_t kBlock = kRecipe == Recipe::mxfp8 ? 32 : 16;
      const std::uint32_t i = kRowwise ? r : c, j = (kRowwise ? c : r) / kBlock;
      constexpr bool kBlocksDown = kRecipe == Recipe::mxfp8 && !kRowwise;  // compact order is [block][k]
      const std::int64_t compact = kBlocksDown ? j * pitch + i : i * pitch + j;
      const std::int64_t at = swizzled ? swizzled_scale_index(i, j, tiles_j) : compact;
      const std::uint32_t scale = __ldg(static_cast<const std::uint8_t*>(first) + at);
      if constexpr (kRecipe == Recipe::mxfp8) {
        return e8m0_dequantize_multiplier(scale);
      } else {
        return multiply(multiply(decode_fp8<Format::e4m3>(scale), tensor_amax), nvfp4_factor);
      }
    }
  }

  // MXFP8 columnwise: the scales of row r of as many columns as four per word make, c the first of them, a multiple of
  // that.
  template <int kWords>
  __device__ void pack_columns(std::uint32_t r, std::uint32_t c, std::uint32_t (&words)[kWords]) const {
    const auto* const bytes = static_cast<const std::uint8_t*>(first);
    const std::int64_t compact = r / 32 * pitch + c;
    if (!swizzled && reinterpret_cast<std::uintptr_t>(bytes) % (4 * kWords) == 0) {  // so is the pitch
      if constexpr (kWords == 2) {
        const uint2 both = __ldg(reinterpret_cast<const uint2*>(bytes + compact));
        words[0] = both.x, words[1] = both.y;
      } else {
        words[0] = __ldg(reinterpret_cast<const std::uint32_t*>(bytes + compact));
      }
      return;
    }
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      words[w] = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t i = c + 4 * w + e;
        const std::int64_t at = swizzled ? swizzled_scale_index(i, r / 32, tiles_j) : compact + 4 * w + e;
        words[w] |= std::uint32_t{__ldg(bytes + at)} << 8 * e;
      }
    }
  }
};

}  // namespace assay::device::dequantization
