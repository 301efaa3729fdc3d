// FP8 block scaling on the device: a call as one launch of the kernel that launch.cuh chooses, and for dbias a second one, which
// adds the sums that the first leaves in the workspace.

#include <cstdint>
#include <limits>
#include <string>

#include "device/dbias/dbias_tiles.h"
#include "device/layout/check_rows.h"
#include "device/quantize/fp8_block/quantize_tiles.cuh"
#include "device/quantize/quantize.h"
#include "device/support/measured_instructions.h"

namespace assay::device {
namespace {

constexpr std::int64_t kBlock = 128;

// The multiple of rows that the launch relies on: columnwise codes of every group then lie in columns of whole vectors. For one
// tensor the host knows the rows; for groups the kernel reports a broken promise.
std::uint32_t relied_on(const QuantizeCall& call, bool columns) {
  const bool seen = call.rows.splits == nullptr && call.rows.capacity % call.rows_multiple == 0;
  return columns && call.rows_multiple % 16 == 0 && !seen ? static_cast<std::uint32_t>(call.rows_multiple) : 1;
}

}  // namespace

// One f32 for each column of each tile of rows, if dbias is requested.
std::int64_t fp8_block_workspace_bytes(const QuantizeCall& call) {
  return call.config.dbias ? max_tiles(call.rows, kBlock) * call.columns * std::int64_t{sizeof(float)} : 0;
}

void quantize_fp8_block(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  const bool dbias = config.dbias && output.dbias != nullptr;

  Fp8BlockTiles tiles{};
  tiles.x = call.x;
  tiles.rows = call.rows;
  tiles.columns = call.columns;
  tiles.max = config.output == Format::e4m3 ? Fp8<Format::e4m3>::kMax : Fp8<Format::e5m2>::kMax;
  tiles.epsilon = config.amax_epsilon;
  tiles.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  tiles.pow2 = config.force_pow_2_scales;
  tiles.noop = call.noop;
  tiles.status = call.status;
  if (config.rowwise) {
    tiles.row_data = static_cast<std::uint8_t*>(output.rowwise_data);
    tiles.row_scale = static_cast<float*>(output.rowwise_scale_inv);
  }
  if (config.columnwise) {
    tiles.column_data = static_cast<std::uint8_t*>(output.columnwise_data);
    tiles.column_scale = static_cast<float*>(output.columnwise_scale_inv);
  }
  tiles.aligned_columns = call.column_alignment != 1;
  tiles.rows_multiple = relied_on(call, tiles.column_data != nullptr);
  tiles.tile_sums = dbias ? static_cast<float*>(call.workspace) : nullptr;
  tiles.aligned = call.columns % 8 == 0 && is_aligned(call.x, 16) && is_aligned(tiles.row_data, 8);

  // Without columns one block still checks the splits.
  const std::int64_t column_tiles = call.columns == 0 ? 1 : ceil_div(call.columns, kBlock);
  const std::int64_t windows = window_count(call.rows);
  if (windows > std::numeric_limits<std::int32_t>::max() / column_tiles) {
    throw NotSupported("rows.capacity is " + std::to_string(call.rows.capacity) + " with columns " +
                       std::to_string(call.columns) + ": more than 2^31 - 1 tiles of 128 x 128");
  }
  tiles.column_tiles = static_cast<std::uint32_t>(column_tiles);
  tiles.blocks = static_cast<std::uint32_t>(windows * column_tiles);
  if (tiles.blocks != 0) {
    const bool gated = config.activation != Activation::off, square = config.recipe == Recipe::block_128x128;
    if (gated) require_measured_instructions("activation swiglu");
    const auto plain_launch = square ? launch_fp8_block_128x128 : launch_fp8_block_1x128;
    const auto launch = !gated ? plain_launch : square ? launch_fp8_block_gated_128x128 : launch_fp8_block_gated_1x128;
    launch(tiles, call.x_type, config.output, stream);
  }
  if (dbias) finish_dbias(dbias_of(call), tiles.tile_sums, call.noop, stream, tiles.rows_multiple);
}

}  // namespace assay::device
