// NVFP4 on the device: what a call wants, as a look at the splits, a pass for the amaxes that were not given, and a pass over
// tiles of 128 x 128 (nvfp4_tile.cuh).

#include <cstdint>
#include <limits>
#include <string>

#include "device/layout/check_rows.h"
#include "device/recipes/dbias.h"
#include "device/recipes/dbias_tiles.h"
#include "device/recipes/group_amax.h"
#include "device/recipes/nvfp4_tile.cuh"
#include "device/recipes/quantize.h"

namespace assay::device {
namespace {

constexpr std::int64_t kTile = 128;
constexpr int kPrepareThreads = 1024;

bool is_multiple(const void* pointer, std::uintptr_t bytes) { return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0; }

// The workspace: what a call notes for its later launches, then the tile sums of dbias.
struct Notes {
  float skip;  // 1.0: the caller's flag says so, or the splits are at fault; nothing is to be written
  std::uint32_t unused[63];
  std::uint32_t row_amax_bits[kMaxGroups];
  std::uint32_t column_amax_bits[kMaxGroups];
};
static_assert(sizeof(Notes) % 256 == 0);

// The faults of splits that keep every group from being written, odd ones included where codes are packed down the rows; and
// zeros for amaxes to be raised from.
__global__ void __launch_bounds__(kPrepareThreads) prepare(const Rows rows, bool packed_rows, const float* noop, Notes* notes,
                                                           std::uint32_t* status) {
  __shared__ unsigned long long sum;
  const int thread = static_cast<int>(threadIdx.x);
  if (is_skipped(noop)) {
    if (thread == 0) notes->skip = 1;
    return;
  }
  notes->row_amax_bits[thread] = 0;
  notes->column_amax_bits[thread] = 0;
  if (thread == 0) sum = 0;
  __syncthreads();

  unsigned faults = 0;
  if (rows.splits != nullptr && thread < rows.groups) {
    const std::int64_t split = rows.splits[thread];
    if (split < 0) faults |= kStatusNegativeSplit;
    if (split > rows.capacity) faults |= kStatusSplitsExceedRows;
    if (packed_rows && split % 2 != 0) faults |= kStatusOddPackedExtent;
    if (split >= 0 && split <= rows.capacity) atomicAdd(&sum, static_cast<unsigned long long>(split));
  }
  unsigned all = 0;
  for (const unsigned bit : {kStatusNegativeSplit, kStatusSplitsExceedRows, kStatusOddPackedExtent}) {
    if (__syncthreads_or((faults & bit) != 0)) all |= bit;
  }
  if (thread != 0) return;
  if (sum > static_cast<unsigned long long>(rows.capacity)) all |= kStatusSplitsExceedRows;
  if (all != 0 && status != nullptr) atomicOr(status, all);
  notes->skip = all != 0 ? 1 : 0;
}
static_assert(kPrepareThreads >= kMaxGroups);

DbiasCall dbias_call(const QuantizeCall& call, float* tile_sums) {
  DbiasCall dbias;
  dbias.x_type = dbias.output_type = call.x_type;
  dbias.x = call.x;
  dbias.rows = call.rows;
  dbias.columns = call.columns;
  dbias.dbias = call.output.dbias;
  dbias.workspace = tile_sums;
  dbias.workspace_bytes = dbias_workspace_bytes(dbias);
  dbias.status = call.status;
  return dbias;
}

}  // namespace

std::int64_t nvfp4_workspace_bytes(const QuantizeCall& call) {
  const std::int64_t sums = call.config.dbias ? dbias_workspace_bytes(dbias_call(call, nullptr)) : 0;
  return static_cast<std::int64_t>(sizeof(Notes)) + sums;
}

void quantize_nvfp4(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  const Rows& rows = call.rows;
  if (rows.groups == 0) return;
  auto* const notes = static_cast<Notes*>(call.workspace);

  Nvfp4Tiles tiles{};
  tiles.x = call.x;
  tiles.rows = rows;
  tiles.columns = call.columns;
  tiles.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  tiles.e4m3_max = config.nvfp4_e4m3_max;
  tiles.sign_mask = config.hadamard_sign_mask;
  tiles.swizzled = config.scale_layout == ScaleLayout::swizzled;
  tiles.two_dimensional = config.two_dimensional;
  tiles.hadamard = config.hadamard && config.columnwise;
  tiles.stochastic = config.stochastic_rounding;
  tiles.four_over_six = config.four_over_six != FourOverSix::off;
  tiles.squared = config.four_over_six == FourOverSix::mean_squared_error;
  tiles.aligned = call.columns % 8 == 0 && is_multiple(call.x, 16);
  tiles.skip = &notes->skip;
  tiles.status = call.status;
  if (config.rowwise) {
    tiles.row_data = static_cast<std::uint8_t*>(output.rowwise_data);
    tiles.row_scale = static_cast<std::uint8_t*>(output.rowwise_scale_inv);
    tiles.row_amax_output = output.amax;
    tiles.row_random = call.rowwise_random;
  }
  if (config.columnwise) {
    tiles.column_data = static_cast<std::uint8_t*>(output.columnwise_data);
    tiles.column_scale = static_cast<std::uint8_t*>(output.columnwise_scale_inv);
    tiles.column_amax_output = output.columnwise_amax;
    tiles.column_random = call.columnwise_random;
  }

  const std::int64_t column_tiles = call.columns == 0 ? 1 : ceil_div(call.columns, kTile);
  const std::int64_t windows = window_count(rows);
  if (windows > std::numeric_limits<std::int32_t>::max() / column_tiles) {
    throw NotSupported("rows.capacity is " + std::to_string(rows.capacity) + " with columns " + std::to_string(call.columns) +
                       ": more than 2^31 - 1 tiles of 128 x 128");
  }
  tiles.column_tiles = static_cast<std::uint32_t>(column_tiles);
  tiles.blocks = static_cast<std::uint32_t>(windows * column_tiles);

  prepare<<<1, kPrepareThreads, 0, stream>>>(rows, config.columnwise, call.noop, notes, call.status);
  check_launch("nvfp4: prepare");

  // G of x and of its transform, nvfp4.h: given, or found here.
  const auto* const found_row = reinterpret_cast<const float*>(notes->row_amax_bits);
  const auto* const found_column = reinterpret_cast<const float*>(notes->column_amax_bits);
  const bool transformed = tiles.hadamard && call.columnwise_amax == nullptr;
  const bool plain_columns = config.columnwise && !tiles.hadamard && call.columnwise_amax == nullptr;
  const bool plain = call.amax == nullptr && (config.rowwise || plain_columns);
  tiles.row_amax = call.amax != nullptr ? call.amax : found_row;
  tiles.column_amax = call.columnwise_amax != nullptr ? call.columnwise_amax : tiles.hadamard ? found_column : tiles.row_amax;
  const bool elements = rows.capacity != 0 && call.columns != 0;
  if (transformed && elements) {
    tiles.row_amax_bits = plain ? notes->row_amax_bits : nullptr;
    tiles.column_amax_bits = notes->column_amax_bits;
    launch_nvfp4_hadamard_amax(tiles, stream);
  } else if (plain && elements) {
    launch_group_amax(call.x_type, call.x, rows, call.columns, tiles.skip, notes->row_amax_bits, call.status, stream);
  }
  tiles.backward = (transformed || plain) && elements;

  if (tiles.blocks == 0) tiles.blocks = 1;  // G of groups without elements is still to be told
  const auto launch = tiles.hadamard                 ? launch_nvfp4_hadamard
                      : call.x_type == Format::bf16 ? launch_nvfp4_bf16
                      : call.x_type == Format::f16  ? launch_nvfp4_f16
                                                    : launch_nvfp4_f32;
  launch(tiles, stream);

  if (config.dbias && output.dbias != nullptr) {
    auto* const tile_sums = reinterpret_cast<float*>(notes + 1);
    const DbiasCall dbias = dbias_call(call, tile_sums);
    sum_tiles(dbias, tile_sums, tiles.skip, stream);
    finish_dbias(dbias, tile_sums, tiles.skip, stream);
  }
}

}  // namespace assay::device
