#pragma once
// Arguments of the blocks that do not write arrays (group_work.cuh, expanded_scales.cuh).

#include <cstdint>

#include "device/cublaslt/group_copies.cuh"
#include "device/cublaslt/group_scan.cuh"
#include "device/cublaslt/group_setup.h"

namespace assay::device::group_setup {

struct Side : CopiedOperand {
  const char* scale;  // of the first group; null: none
  std::int64_t extent, depth;
};

struct Arguments : GroupRows {
  Side a, b;
  char* d;
  const char* c;  // d where the caller gave none
  const float* alpha;
  const float* beta;
  std::int64_t d_half_bytes;  // of an element
  bool scalars_per_group;
  bool list_is_d;  // Lists::data holds D, not A
  bool fill;       // groups without products, groups to be copied; else scales are written out
  Format d_type;
  std::int64_t scale_bytes;  // 128x128 scales of a group
  float* expanded;
  std::int64_t expanded_bytes;  // of a group
  std::int32_t extent_tiles, depth_blocks, scale_pitch;
};

}  // namespace assay::device::group_setup
