// Values of codes and scales, for every recipe and both directions.
//
//   traffic   1 B read (NVFP4: half) and 2 or 4 B written per element, and the scales
//   ceiling   HBM
//   layout    tiles of 64 x 64; transposed codes pass through 4 KiB of shared memory
//   order     each value is made by itself
//   matches   reference/recipes/dequantize.h

#include "device/recipes/dequantize.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "device/formats/convert.cuh"
#include "device/layout/group_table.cuh"
#include "device/layout/scale_layout.cuh"
#include "device/recipes/call_checks.h"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTile = 64;

struct TensorScaleLayout {  // one scale a group
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

// Factor of element (r, c) of a group, which its scale stands for.
template <Recipe kRecipe, Direction kDirection>
struct Scales {
  using Layout = typename LayoutOf<kRecipe, kDirection>::Type;
  const void* first = nullptr;  // of the group
  std::int64_t pitch = 0, tiles_j = 0;
  bool swizzled = false;
  float tensor_amax = 0, nvfp4_factor = 0;

  __device__ Scales(const DequantizeCall& call, const GroupTile<1>& tile, float factor) : nvfp4_factor(factor) {
    if constexpr (kRecipe == Recipe::tensor_current) {
      first = static_cast<const float*>(call.scale_inv) + tile.group;
    } else {
      const std::int64_t elements = Layout::factor(call.columns) * tile.before[0];
      pitch = Layout::pitch(tile.rows, call.columns);
      if constexpr (kRecipe == Recipe::mxfp8 || kRecipe == Recipe::nvfp4) {
        first = static_cast<const std::uint8_t*>(call.scale_inv) + elements;
        tiles_j = Layout::tiles_j(tile.rows, call.columns);
        swizzled = call.scale_layout == ScaleLayout::swizzled;
        if constexpr (kRecipe == Recipe::nvfp4) tensor_amax = __ldg(call.amax + tile.group);
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
};

template <Format kOut>
__device__ void store_value(void* output, std::int64_t at, float value) {
  if constexpr (kOut == Format::f32) {
    __stcs(static_cast<float*>(output) + at, stored_float(value));
  } else {
    const unsigned short code = kOut == Format::bf16 ? encode_bf16(value) : encode_f16(value);
    __stcs(static_cast<unsigned short*>(output) + at, code);
  }
}

template <Format kData>
__device__ float decode(std::uint32_t code) {
  if constexpr (kData == Format::e2m1) {
    return decode_e2m1(code);
  } else {
    return decode_fp8<kData>(code);
  }
}

// Code `at` of codes that are stored one or two a byte.
template <Format kData>
__device__ std::uint32_t load_code(const void* data, std::int64_t at) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  if constexpr (kData == Format::e2m1) {
    return __ldg(bytes + at / 2) >> at % 2 * 4 & 0xFu;
  } else {
    return __ldg(bytes + at);
  }
}

template <Recipe kRecipe, Direction kDirection, Format kData, Format kOut>
__global__ void __launch_bounds__(kThreads) dequantize_tile(const DequantizeCall call, unsigned tiles_across, float nvfp4_factor) {
  using Layout = typename LayoutOf<kRecipe, kDirection>::Type;
  using Measure = typename Layout::Measure;
  constexpr bool kTransposed = kDirection == Direction::columnwise && kRecipe != Recipe::mxfp8;
  __shared__ LocateTile<kTile, Measure> scratch;
  __shared__ std::uint8_t codes[kTransposed ? kTile : 1][kTile + 4];

  if constexpr (kRecipe == Recipe::nvfp4 && kDirection == Direction::columnwise) {  // two codes a byte down the rows
    int odd = 0;
    if (call.rows.splits != nullptr) {
      for (int t = static_cast<int>(threadIdx.x); t < call.rows.groups; t += kThreads) {
        odd |= call.rows.splits[t] > 0 && call.rows.splits[t] % 2 != 0;
      }
    }
    if (__syncthreads_or(odd) != 0) {
      if (blockIdx.x == 0 && threadIdx.x == 0 && call.status != nullptr) atomicOr(call.status, kStatusOddPackedExtent);
      return;
    }
  }
  GroupTile<1> tile;
  const std::uint32_t down = blockIdx.x / tiles_across;
  if (!(locate_tile<kTile, Measure>(call.rows, down, scratch, call.status, tile))) return;
  const Scales<kRecipe, kDirection> scales(call, tile, nvfp4_factor);

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first_row = std::int64_t{tile.tile} * kTile, first_column = std::int64_t{blockIdx.x - down * tiles_across} * kTile;
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
          codes[r][c] = static_cast<std::uint8_t>(load_code<kData>(call.data, at));
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
        const std::uint32_t code = kTransposed ? codes[kTransposed ? r : 0][c] : load_code<kData>(call.data, at);
        store_value<kOut>(call.output, at, multiply(decode<kData>(code), scales.of(static_cast<std::uint32_t>(first_row) + r, static_cast<std::uint32_t>(first_column) + c)));
      }
    }
  }
}

template <Recipe kRecipe, Direction kDirection, Format kData>
void launch(const DequantizeCall& call, Stream stream) {
  const std::int64_t across = (call.columns + kTile - 1) / kTile, blocks = max_tiles(call.rows, kTile) * across;
  if (blocks >= std::int64_t{1} << 31) throw NotSupported("rows and columns make more tiles of 64 x 64 than 2^31");
  const auto kernel = call.output_type == Format::bf16  ? dequantize_tile<kRecipe, kDirection, kData, Format::bf16>
                      : call.output_type == Format::f16 ? dequantize_tile<kRecipe, kDirection, kData, Format::f16>
                                                        : dequantize_tile<kRecipe, kDirection, kData, Format::f32>;
  const float factor = 1.0f / (6.0f * call.nvfp4_e4m3_max);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(call, static_cast<unsigned>(across), factor);
  check_launch("dequantize: dequantize_tile");
}

template <Recipe kRecipe>
void launch_recipe(const DequantizeCall& call, Stream stream) {
  const auto of_data = [&]<Direction kDirection>() {
    if constexpr (kRecipe == Recipe::nvfp4) {
      launch<kRecipe, kDirection, Format::e2m1>(call, stream);
    } else if (call.data_type == Format::e4m3) {
      launch<kRecipe, kDirection, Format::e4m3>(call, stream);
    } else {
      launch<kRecipe, kDirection, Format::e5m2>(call, stream);
    }
  };
  call.direction == Direction::rowwise ? of_data.template operator()<Direction::rowwise>()
                                       : of_data.template operator()<Direction::columnwise>();
}

void check_call(const DequantizeCall& call) {
  const auto refuse = [](bool holds, const char* argument, const std::string& value, const std::string& expected) {
    if (!holds) require(false, argument, value, expected);
  };
  refuse(call.recipe <= Recipe::nvfp4, "recipe", std::to_string(static_cast<std::uint32_t>(call.recipe)), "a recipe (0 to 5)");
  const std::string name = recipe_name(call.recipe);
  const bool nvfp4 = call.recipe == Recipe::nvfp4, small_blocks = nvfp4 || call.recipe == Recipe::mxfp8;
  refuse(call.direction <= Direction::columnwise, "direction", std::to_string(static_cast<std::uint32_t>(call.direction)),
         "rowwise (0) or columnwise (1)");
  check_wide(call.output_type, "output_type");
  if (nvfp4) {
    refuse(call.data_type == Format::e2m1, "data_type", format_name(call.data_type), "e2m1 for nvfp4");
  } else {
    refuse(is_fp8(call.data_type), "data_type", format_name(call.data_type), "e4m3 or e5m2 for " + name);
  }
  refuse(call.scale_layout == ScaleLayout::compact || (call.scale_layout == ScaleLayout::swizzled && small_blocks),
         "scale_layout", std::to_string(static_cast<std::uint32_t>(call.scale_layout)), "compact (0) for " + name);
  refuse(call.nvfp4_e4m3_max == 448 || (nvfp4 && call.nvfp4_e4m3_max == 256), "nvfp4_e4m3_max", shown(call.nvfp4_e4m3_max),
         nvfp4 ? "448 or 256" : "448 for " + name);

  check_matrix(call.rows, call.columns);
  if (nvfp4 && call.direction == Direction::rowwise && call.columns % 2 != 0) {
    require(false, "columns", call.columns, "an even number for rowwise nvfp4");
  }
  if (nvfp4 && call.direction == Direction::columnwise && call.rows.splits == nullptr && call.rows.capacity % 2 != 0) {
    require(false, "rows.capacity", call.rows.capacity, "an even number for columnwise nvfp4");
  }
  check_alignment(call.status, "status", 4);
  if (call.rows.capacity == 0 || call.columns == 0 || call.rows.groups == 0) return;
  require_pointer(call.data, "data");
  require_pointer(call.scale_inv, "scale_inv", small_blocks ? 1 : 4);
  if (nvfp4) require_pointer(call.amax, "amax", 4);
  require_pointer(call.output, "output", static_cast<std::uintptr_t>(wide_bytes(call.output_type)));
}

}  // namespace

void dequantize(const DequantizeCall& call, Stream stream) {
  check_call(call);
  if (max_tiles(call.rows, kTile) == 0 || call.columns == 0) return;
  switch (call.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed:
      return launch_recipe<Recipe::tensor_current>(call, stream);
    case Recipe::block_1x128:
      return launch_recipe<Recipe::block_1x128>(call, stream);
    case Recipe::block_128x128:
      return launch_recipe<Recipe::block_128x128>(call, stream);
    case Recipe::mxfp8:
      return launch_recipe<Recipe::mxfp8>(call, stream);
    case Recipe::nvfp4:
      return launch_recipe<Recipe::nvfp4>(call, stream);
  }
}

}  // namespace assay::device
