// Values of codes where rows do not allow vectors: any recipe and direction.
//
//   traffic   1 B read (NVFP4: half) and 2 or 4 B written per element, and the scales
//   ceiling   the instructions of a value. The format is chosen at run time, which saves many kernels: this one is rarely
//             used
//   layout    tiles of 64 x 64; transposed data are turned in shared memory
//   order     each value is computed by itself
//   matches   reference/recipes/dequantize.h

#include <cuda_runtime.h>

#include <cstdint>

#include "device/dequantize/scales.cuh"
#include "device/dequantize/values.cuh"

namespace assay::device::dequantization {
namespace {

constexpr int kTile = 64;

__device__ inline void store_value(const DequantizeCall& call, std::int64_t at, float value) {
  switch (call.output_type) {
    case Format::bf16:
      return __stcs(static_cast<unsigned short*>(call.output) + at, static_cast<unsigned short>(encode_bf16(value)));
    case Format::f16:
      return __stcs(static_cast<unsigned short*>(call.output) + at, static_cast<unsigned short>(encode_f16(value)));
    default: return __stcs(static_cast<float*>(call.output) + at, stored_float(value));
  }
}

template <Recipe kRecipe>
__device__ float decode(const DequantizeCall& call, std::uint32_t code) {
  if constexpr (kRecipe == Recipe::nvfp4) {
    return decode_e2m1(code);
  } else {
    return call.data_type == Format::e4m3 ? decode_fp8<Format::e4m3>(code) : decode_fp8<Format::e5m2>(code);
  }
}

// Code `at` of codes that are stored one or two per byte.
template <Recipe kRecipe>
__device__ std::uint32_t load_code(const void* data, std::int64_t at) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  if constexpr (kRecipe == Recipe::nvfp4) {
    return __ldg(bytes + at / 2) >> at % 2 * 4 & 0xFu;
  } else {
    return __ldg(bytes + at);
  }
}

template <Recipe kRecipe, Direction kDirection>
__global__ void __launch_bounds__(kThreads)
    dequantize_tile(const DequantizeCall call, unsigned tiles_across, float nvfp4_factor) {
  using Layout = typename LayoutOf<kRecipe, kDirection>::Type;
  using Measure = typename Layout::Measure;
  constexpr bool kTransposed = kDirection == Direction::columnwise && kRecipe != Recipe::mxfp8;
  __shared__ LocateTile<kTile, Measure> scratch;
  __shared__ std::uint8_t codes[kTransposed ? kTile : 1][kTile + 4];

  if (kRecipe == Recipe::nvfp4 && kDirection == Direction::columnwise && has_odd_split(call)) return;
  GroupTile<1> tile;
  const std::uint32_t down = blockIdx.x / tiles_across;
  if (!(locate_tile<kTile, Measure>(call.rows, down, scratch, call.status, tile))) return;
  const Scales<kRecipe, kDirection> scales(call, tile.group, tile.rows, tile.before[0], nvfp4_factor);

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first_row = std::int64_t{tile.tile} * kTile,
                     first_column = std::int64_t{blockIdx.x - down * tiles_across} * kTile;
  const int rows = static_cast<int>(min(std::int64_t{tile.rows} - first_row, std::int64_t{kTile}));
  const int columns = static_cast<int>(min(call.columns - first_column, std::int64_t{kTile}));
  const std::int64_t group_base = std::int64_t{tile.first_row} * call.columns;  // its first element, in either order

  if constexpr (kTransposed) {
    for (int c = warp; c < columns; c += kWarps) {
#pragma unroll
      for (int half = 0; half < kTile; half += 32) {
        const int r = half + lane;
        if (r < rows) {
          const std::int64_t at = group_base + (first_column + c) * tile.rows + first_row + r;
          codes[r][c] = static_cast<std::uint8_t>(load_code<kRecipe>(call.data, at));
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kTile / kWarps; ++i) {
    const int r = warp + i * kWarps;
#pragma unroll
    for (int half = 0; half < kTile; half += 32) {
      const int c = half + lane;
      if (r < rows && c < columns) {
        const std::int64_t at = group_base + (first_row + r) * call.columns + first_column + c;
        const std::uint32_t code = kTransposed ? codes[kTransposed ? r : 0][c] : load_code<kRecipe>(call.data, at);
        const float factor = scales.of(static_cast<std::uint32_t>(first_row) + r, static_cast<std::uint32_t>(first_column) + c);
        store_value(call, at, multiply(decode<kRecipe>(call, code), factor));
      }
    }
  }
}

template <Recipe kRecipe>
void launch(const DequantizeCall& call, Stream stream) {
  const auto kernel = call.direction == Direction::rowwise ? dequantize_tile<kRecipe, Direction::rowwise>
                                                           : dequantize_tile<kRecipe, Direction::columnwise>;
  start_blocks(kernel, "dequantize: dequantize_tile", call, max_tiles(call.rows, kTile), kTile, stream);
}

}  // namespace

void launch_elements(const DequantizeCall& call, Stream stream) {
  switch (call.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: return launch<Recipe::tensor_current>(call, stream);
    case Recipe::block_1x128: return launch<Recipe::block_1x128>(call, stream);
    case Recipe::block_128x128: return launch<Recipe::block_128x128>(call, stream);
    case Recipe::mxfp8: return launch<Recipe::mxfp8>(call, stream);
    case Recipe::nvfp4: return launch<Recipe::nvfp4>(call, stream);
  }
}

}  // namespace assay::device::dequantization
