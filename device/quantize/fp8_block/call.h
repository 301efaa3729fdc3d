#pragma once
// A call of FP8 block scaling as its kernels take it, and the launches: fp8_block.cu fills it in.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/layout/groups.h"
#include "reference/types/format.h"

namespace assay::device {

struct Fp8BlockTiles {
  const void* x;  // [rows.capacity, columns]; kGatedPart: [rows.capacity, 2 columns], gate then up
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also without columns
  std::uint32_t blocks;        // of the launch: windows of 128 rows times column_tiles
  float max;                   // largest value of the codes
  float epsilon;
  float zero;  // see multiply_with_zero()
  bool pow2;
  bool aligned_columns;  // of codes (column_layout.h)
  bool aligned;          // x and rowwise data allow vectors in every row
  const float* noop;
  std::uint8_t* row_data;  // each of these may be null: not requested
  std::uint8_t* column_data;
  float* row_scale;
  float* column_scale;
  float* tile_sums;  // [tiles of rows, columns]
  std::uint32_t* status;
  std::uint32_t rows_multiple;  // promised for every group, and checked; or 1
};

// The parts that a kernel is compiled for. A call may request fewer. kGatedPart: x is computed from gate and up (swiglu.cuh).
enum Fp8BlockParts : unsigned { kRowPart = 1, kColumnPart = 2, kDbiasPart = 4, kGatedPart = 8 };

// quantize_1x128.cu and quantize_128x128.cu.
void launch_fp8_block_1x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);
void launch_fp8_block_128x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);
// quantize_gated_1x128.cu and quantize_gated_128x128.cu: of bf16 or f16, without tile_sums.
void launch_fp8_block_gated_1x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);
void launch_fp8_block_gated_128x128(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream);

}  // namespace assay::device
