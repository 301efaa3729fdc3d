#pragma once
// 128x128 scales of w written out as scales of 1x128: a warp per tile, one scale read, up to 512 bytes written.

#include <cstdint>

#include "device/cublaslt/group_arrays.cuh"
#include "device/cublaslt/group_work.h"
#include "device/layout/scale_layout.cuh"

namespace assay::device::group_setup {

template <int kCapacity>
__device__ void expand_scales(const Arguments& arguments, const Lists<kCapacity>& lists) {
  const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
  const std::int64_t tiles_of_group = static_cast<std::int64_t>(arguments.extent_tiles) * arguments.depth_blocks;
  const std::int64_t tiles = tiles_of_group * arguments.rows.groups;
  const std::int64_t pitch = round_up(arguments.a.extent, 4);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x - kArrayBlocks) * warps;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x - kArrayBlocks) * warps + threadIdx.x / 32; at < tiles;
       at += stride) {
    const int group = static_cast<int>(at / tiles_of_group);
    const auto tile = static_cast<std::int32_t>(at - group * tiles_of_group);
    const std::int32_t block = tile / arguments.extent_tiles, row_tile = tile - block * arguments.extent_tiles;
    const char* scales = arguments.a.scale + group * arguments.scale_bytes;
    if constexpr (kCapacity != 0) scales = static_cast<const char*>(list_entry(lists, true, group));
    const float scale =
        reinterpret_cast<const float*>(scales)[static_cast<std::int64_t>(row_tile) * arguments.scale_pitch + block];
    const std::int64_t row = static_cast<std::int64_t>(row_tile) * 128 + lane * 4;
    if (row >= pitch) continue;
    float* to = arguments.expanded + group * (arguments.expanded_bytes / 4) + block * pitch + row;
    *reinterpret_cast<float4*>(to) = make_float4(scale, scale, scale, scale);
  }
}

}  // namespace assay::device::group_setup
