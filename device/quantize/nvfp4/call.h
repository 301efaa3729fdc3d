#pragma once
// A call of NVFP4 as its kernels take it, and the launches by type of x: nvfp4.cu fills it in.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/layout/groups.h"
#include "reference/recipes/random_draws.h"

namespace assay::device {

// A group of rows, and the sums over the groups before it.
struct alignas(16) Nvfp4Group {
  std::uint32_t first_row;  // in the buffer
  std::uint32_t rows;
  std::uint32_t tiles_before;    // of 128 rows
  std::uint32_t columns_before;  // blocks of 16 rows, rounded up to 4 in each group
};

// Values that depend on the G of a group, nvfp4.h.
struct alignas(16) Nvfp4Scaling {
  float amax, scale, inverse;  // G, S, 1/S
  std::uint32_t cuts;          // not 0: codes may be found by cut_codes.cuh
};

// The kernel: quantize_rows.cuh says which calls `rows` takes.
enum class Nvfp4Variant { tiles, rows };

inline constexpr std::uint32_t kNvfp4NoGroup = 0xFFFF'FFFFu;
inline constexpr int kNvfp4SegmentRows = 16;

struct Nvfp4Tiles {
  const void* x;  // [rows.capacity, columns]
  Rows rows;
  std::int64_t columns;
  std::uint32_t column_tiles;  // at least 1, also where there are no columns
  std::uint32_t blocks;        // of the launch
  Nvfp4Variant variant;
  // Where there are splits: the groups, then the group of each tile of 128 rows and of the first of each 16 rows of
  // the buffer, or kNvfp4NoGroup.
  const Nvfp4Group* groups;
  const std::uint32_t* group_of_tile;
  const std::uint32_t* group_of_rows;
  const Nvfp4Scaling* row_scaling;  // [groups]
  const Nvfp4Scaling* column_scaling;
  float zero;  // see multiply_with_zero()
  float e4m3_max;
  std::uint32_t sign_mask;  // of the Hadamard transform
  bool swizzled;
  bool two_dimensional;
  bool hadamard;
  bool stochastic;
  bool four_over_six;
  bool squared;   // 4over6 with squared errors
  bool reversed;  // last tiles first: what an earlier pass read last may still be in L2
  bool aligned;   // x allows vectors of 8 elements in every row
  const float* skip;
  std::uint32_t* row_amax_bits;  // [groups], accumulated by find_amaxes
  std::uint32_t* column_amax_bits;
  std::uint8_t* row_data;
  std::uint8_t* column_data;
  std::uint8_t* row_scale;
  std::uint8_t* column_scale;
  const std::uint8_t* row_random;
  const std::uint8_t* column_random;
  std::uint32_t* status;
  // Random bytes that are drawn (random_draws.cuh). At the end: parameters of kernels that draw nothing stay where they are.
  RandomDraws draws;
  bool draws_rowwise, draws_columnwise;
  const std::int64_t* draw_state;  // [groups, 2]: seed and offset
};

// quantize_bf16.cu, quantize_f16.cu, quantize_f32.cu, quantize_drawn_....cu and hadamard.cu.
void launch_nvfp4_bf16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_f16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_f32(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_drawn_bf16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_drawn_f16(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_drawn_f32(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_hadamard(const Nvfp4Tiles& tiles, cudaStream_t stream);
void launch_nvfp4_hadamard_amax(const Nvfp4Tiles& tiles, cudaStream_t stream);

}  // namespace assay::device
