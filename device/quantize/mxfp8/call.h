#pragma once
// A call of MXFP8 as its kernels take it, and the launches: mxfp8.cu fills it in.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/layout/groups.h"
#include "reference/types/format.h"

namespace assay::device {

// The kernel: `tiles` takes every call; quantize_rows.cuh and quantize_blocks.cuh say which calls the others take.
enum class Mxfp8Variant { tiles, rows, blocks };

struct Mxfp8Tiles {
  const void* x;  // [rows.capacity, columns]
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also without columns
  std::uint32_t blocks;        // of the launch
  Mxfp8Variant variant;
  float zero;  // see multiply_with_zero()
  bool swizzled;
  bool two_dimensional;
  bool aligned;        // x and codes allow vectors of 4 elements in every row
  bool scale_vectors;  // the scale buffers begin at multiples of 4 bytes
  const float* noop;
  std::uint8_t* row_data;  // each of these may be null: not requested
  std::uint8_t* column_data;
  std::uint8_t* row_scale;
  std::uint8_t* column_scale;
  float* tile_sums;  // [tiles of rows, columns]
  std::uint32_t* status;
};

// quantize_bf16.cu, quantize_f16.cu and quantize_f32.cu.
void launch_mxfp8_bf16(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);
void launch_mxfp8_f16(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);
void launch_mxfp8_f32(const Mxfp8Tiles& tiles, Format output, cudaStream_t stream);

}  // namespace assay::device
