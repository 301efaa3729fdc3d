// Values of codes that lie row by row: every rowwise tensor, and MXFP8 of both directions.
//
//   traffic   1 B read (NVFP4: half) and 2 or 4 B written per element, and the scales
//   ceiling   HBM
//   layout    a lane takes the codes of 16 B of output, 8 times, all loads in flight at once; a warp stores 512 B of a row
//             at a time. 16-bit output (f32: 2 rows a warp, 4 columns a lane, 4 parts of 128 columns):
//
//                       part 0: columns 0 .. 7 | 8 .. 15 | ... | 248 .. 255   part 1: columns 256 .. 511
//     rows 0 .. 3       warp 0, lane 0         | lane 1  | ... | lane 31      warp 0, the same lanes
//     rows 4 .. 7       warp 1                                                warp 1
//     ...
//     rows 28 .. 31     warp 7                                                warp 7
//
//   ragged    where a block's rows lie does not depend on the groups: they are found while the codes are loaded
//   order     each value is computed by itself
//   matches   reference/recipes/dequantize.h

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "device/dequantize/scales.cuh"
#include "device/dequantize/values.cuh"

namespace assay::device::dequantization {
namespace {

// A block takes some rows of the buffer, 512 columns of them, regardless of the groups.
constexpr int kStripColumns = 512;  // 32 bytes of NVFP4's scales

template <Format kOut>
constexpr int kStripParts = kStripColumns / (32 * kLaneValues<kOut>);  // a warp takes a row in so many parts
template <Format kOut>
constexpr int kRowsOfWarp = 8 / kStripParts<kOut>;
template <Format kOut>
constexpr int kStripRows = kWarps* kRowsOfWarp<kOut>;

// A group that has rows in a strip.
struct StripGroup {
  std::uint32_t group, first_row, rows;
  std::uint32_t before;  // sum of the layout's measure over the groups before
};

// Of a thread's groups `begin` to `end`, with the sums `running` before them: those that have rows in the strip, to `groups`,
// in any order.
template <int kRows, class Sums>
__device__ __forceinline__ void collect_groups(const DequantizeCall& call, std::uint32_t strip_row, int begin, int end,
                                               Sums running, unsigned& count, StripGroup (&groups)[kRows]) {
  unsigned no_faults = 0;
  for (int t = begin; t < end; ++t) {
    const std::uint32_t rows = group_detail::read_split(call.rows, t, no_faults), group_row = running.value[0];
    if (rows != 0 && group_row < strip_row + kRows && group_row + rows > strip_row) {
      groups[atomicAdd(&count, 1u)] = {static_cast<std::uint32_t>(t), group_row, rows, running.value[1]};
    }
    running.add(Sums::of(rows), static_cast<std::uint32_t>(call.rows.capacity));
  }
}

// The steps after the codes are loaded: scales, values, store. Row k and part p of the lane begin at (first_row + k,
// first_column + p * 32 * kValues); rows from `used` on belong to no group. The lambdas of the kernel:
//   find_group(row)        makes `own` the group of a row
//   scales_of(group)       its scales
//   is_present(k, p, n)    whether the part is among the first n rows and inside the matrix
//   store(k, p, factors)   decodes, multiplies, stores

// One factor for each part of a row. All scales are loaded before the first value is stored.
template <Format kOut, class FindGroup, class ScalesOf, class IsPresent, class Store>
__device__ __forceinline__ void store_parts(std::uint32_t first_row, std::int64_t first_column, std::uint32_t used,
                                            bool one_group, StripGroup& own, const FindGroup& find_group,
                                            const ScalesOf& scales_of, const IsPresent& is_present, const Store& store) {
  constexpr int kValues = kLaneValues<kOut>, kParts = kStripParts<kOut>, kRows = kRowsOfWarp<kOut>;
  float factor[kRows][kParts];
  if (one_group) {
    const auto scales = scales_of(own);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        factor[k][p] = 0;
        if (is_present(k, p, used)) {
          factor[k][p] = scales.of(first_row + k - own.first_row, static_cast<std::uint32_t>(first_column) + p * (32 * kValues));
        }
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (first_row + k < used) find_group(first_row + k);
      const auto scales = scales_of(own);
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        factor[k][p] = 0;
        if (is_present(k, p, used)) {
          factor[k][p] = scales.of(first_row + k - own.first_row, static_cast<std::uint32_t>(first_column) + p * (32 * kValues));
        }
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      float factors[kValues];
#pragma unroll
      for (int v = 0; v < kValues; ++v) factors[v] = factor[k][p];
      store(k, p, factors);
    }
  }
}

// MXFP8 columnwise: a factor for each column, held as E8M0 while rows stay in one block of 32.
template <Format kOut, class FindGroup, class ScalesOf, class IsPresent, class Store>
__device__ __forceinline__ void store_columns(std::uint32_t first_row, std::int64_t first_column, std::uint32_t used,
                                              StripGroup& own, const FindGroup& find_group, const ScalesOf& scales_of,
                                              const IsPresent& is_present, const Store& store) {
  constexpr int kValues = kLaneValues<kOut>, kParts = kStripParts<kOut>, kRows = kRowsOfWarp<kOut>;
  std::uint32_t packed[kParts][kValues / 4];
  std::uint32_t block = ~0u;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const std::uint32_t row = first_row + k;
    if (row >= used) break;
    const bool left = row - own.first_row >= own.rows;
    if (left) find_group(row);
    const std::uint32_t own_block = (row - own.first_row) / 32;
    if (left || own_block != block) {
      block = own_block;
      const auto scales = scales_of(own);
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        if (is_present(k, p, used)) {
          scales.pack_columns(row - own.first_row, static_cast<std::uint32_t>(first_column) + p * (32 * kValues), packed[p]);
        }
      }
    }
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      float factors[kValues];
#pragma unroll
      for (int v = 0; v < kValues; ++v) factors[v] = e8m0_dequantize_multiplier(packed[p][v / 4] >> v % 4 * 8 & 0xFFu);
      store(k, p, factors);
    }
  }
}

template <Recipe kRecipe, Direction kDirection, Format kData, Format kOut>
__global__ void __launch_bounds__(kThreads, kDequantizeBlocks<kRecipe, kDirection>)
    dequantize_rows(const DequantizeCall call, unsigned across, float nvfp4_factor) {
  constexpr int kValues = kLaneValues<kOut>, kParts = kStripParts<kOut>, kRows = kRowsOfWarp<kOut>;
  using Sums = group_detail::Sums<typename LayoutOf<kRecipe, kDirection>::Type::Measure>;
  __shared__ group_detail::BlockScratch<Sums> scratch;
  __shared__ unsigned count;
  __shared__ StripGroup groups[kStripRows<kOut>];

  const unsigned strip = blockIdx.x / across, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t strip_row = strip * kStripRows<kOut>, first_row = strip_row + warp * kRows;
  const std::int64_t first_column = std::int64_t{blockIdx.x - strip * across} * kStripColumns + lane * kValues;
  const std::int64_t first = first_row * call.columns + first_column;
  const auto place = [&](int row, int part) { return first + row * call.columns + part * (32 * kValues); };
  const auto is_present = [&](int row, int part, std::int64_t rows) {
    return first_row + row < rows && first_column + part * (32 * kValues) < call.columns;
  };

  LaneCodes<kData, kOut> codes[kRows][kParts];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      if (is_present(k, p, call.rows.capacity)) codes[k][p].load(call.data, place(k, p));
    }
  }

  auto used = static_cast<std::uint32_t>(call.rows.capacity);
  StripGroup own{0, 0, used, 0};
  unsigned found = 1;
  if (call.rows.splits != nullptr) {
    if (threadIdx.x == 0) count = 0;
    int begin, end;
    Sums running, total;
    if (!group_detail::scan_block(call.rows, scratch, call.status, begin, end, running, total)) return;
    collect_groups(call, strip_row, begin, end, running, count, groups);
    used = total.value[0];
    __syncthreads();
    found = count;
    if (found == 0) return;
    own = groups[0];
  }

  const auto find_group = [&](std::uint32_t row) {  // it belongs to one of these groups
    for (unsigned s = 0; row - own.first_row >= own.rows && s < found; ++s) own = groups[s];
  };
  const auto scales_of = [&](const StripGroup& group) {
    return Scales<kRecipe, kDirection>(call, group.group, group.rows, group.before, nvfp4_factor);
  };
  const auto store = [&](int k, int p, const float(&factors)[kValues]) {
    if (!is_present(k, p, used)) return;
    float values[kValues];
    codes[k][p].decode_all(values);
    store_values<kOut>(call.output, place(k, p), values, factors);
  };
  if constexpr (kRecipe == Recipe::mxfp8 && kDirection == Direction::columnwise) {
    store_columns<kOut>(first_row, first_column, used, own, find_group, scales_of, is_present, store);
  } else {
    store_parts<kOut>(first_row, first_column, used, found == 1, own, find_group, scales_of, is_present, store);
  }
}

template <Recipe kRecipe, Direction kDirection>
void launch(const DequantizeCall& call, Stream stream) {
  with_formats<kRecipe>(call, [&]<Format kData, Format kOut>() {
    const std::int64_t strips = std::max<std::int64_t>(1, ceil_div(call.rows.capacity, kStripRows<kOut>));
    start_blocks(dequantize_rows<kRecipe, kDirection, kData, kOut>, "dequantize: dequantize_rows", call, strips, kStripColumns,
                 stream);
  });
}

}  // namespace

void launch_rows(const DequantizeCall& call, Stream stream) {
  switch (call.recipe) {
    case Recipe::tensor_current:
    case Recipe::tensor_delayed: return launch<Recipe::tensor_current, Direction::rowwise>(call, stream);
    case Recipe::block_1x128: return launch<Recipe::block_1x128, Direction::rowwise>(call, stream);
    case Recipe::block_128x128: return launch<Recipe::block_128x128, Direction::rowwise>(call, stream);
    case Recipe::mxfp8:
      return call.direction == Direction::rowwise ? launch<Recipe::mxfp8, Direction::rowwise>(call, stream)
                                                  : launch<Recipe::mxfp8, Direction::columnwise>(call, stream);
    case Recipe::nvfp4: return launch<Recipe::nvfp4, Direction::rowwise>(call, stream);
  }
}

}  // namespace assay::device::dequantization
