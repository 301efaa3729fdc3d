// MXFP8 on the device: a call as one launch, and for dbias a second one, which adds the sums that the first leaves in the
// workspace.
//
//     x is bf16 or f16, columns are a multiple of 8, x is aligned to 16 B and codes to 8 B, neither dbias nor 2-D tiles:
//         columnwise output, with or without rowwise    quantize_blocks.cuh
//         rowwise output alone, one tensor              quantize_rows.cuh, quantize_rows
//         rowwise output alone, groups                  quantize_rows.cuh, quantize_ragged_rows
//     all else                                          quantize_tiles.cuh, with vectors where columns are a multiple
//                                                       of 4, x is aligned to 16 B and codes to 4 B

#include <cstdint>
#include <limits>
#include <string>

#include "device/dbias/dbias_tiles.h"
#include "device/layout/check_rows.h"
#include "device/quantize/mxfp8/quantize_blocks.cuh"
#include "device/quantize/mxfp8/quantize_rows.cuh"
#include "device/quantize/mxfp8/quantize_tiles.cuh"
#include "device/quantize/quantize.h"

namespace assay::device {
namespace {

constexpr std::int64_t kTile = 128, kBlock = 32;

}  // namespace

// One f32 for each column of each tile of rows, if dbias is requested.
std::int64_t mxfp8_workspace_bytes(const QuantizeCall& call) {
  return call.config.dbias ? max_tiles(call.rows, kTile) * call.columns * std::int64_t{sizeof(float)} : 0;
}

void quantize_mxfp8(const QuantizeCall& call, Stream stream) {
  const QuantizeConfig& config = call.config;
  const QuantizeOutput& output = call.output;
  const bool dbias = config.dbias && output.dbias != nullptr;

  Mxfp8Tiles tiles{};
  tiles.x = call.x;
  tiles.rows = call.rows;
  tiles.columns = call.columns;
  tiles.zero = zero_addend(config.zero_sign == ZeroSign::kept);
  tiles.swizzled = config.scale_layout == ScaleLayout::swizzled;
  tiles.two_dimensional = config.two_dimensional;
  tiles.noop = call.noop;
  tiles.status = call.status;
  if (config.rowwise) {
    tiles.row_data = static_cast<std::uint8_t*>(output.rowwise_data);
    tiles.row_scale = static_cast<std::uint8_t*>(output.rowwise_scale_inv);
  }
  if (config.columnwise) {
    tiles.column_data = static_cast<std::uint8_t*>(output.columnwise_data);
    tiles.column_scale = static_cast<std::uint8_t*>(output.columnwise_scale_inv);
  }
  tiles.tile_sums = dbias ? static_cast<float*>(call.workspace) : nullptr;
  tiles.aligned =
      call.columns % 4 == 0 && is_aligned(call.x, 16) && is_aligned(tiles.row_data, 4) && is_aligned(tiles.column_data, 4);
  tiles.scale_vectors = is_aligned(tiles.row_scale, 4) && is_aligned(tiles.column_scale, 4);

  const bool rows = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  const bool columns = tiles.column_data != nullptr || tiles.column_scale != nullptr;
  const bool vectors = call.x_type != Format::f32 && call.columns % 8 == 0 && is_aligned(call.x, 16) &&
                       is_aligned(tiles.row_data, 8) && is_aligned(tiles.column_data, 8);
  if (vectors && !dbias && !config.two_dimensional && (rows || columns))
    tiles.variant = columns ? Mxfp8Variant::blocks : Mxfp8Variant::rows;

  // Without columns, or without rows, one block still checks the splits.
  const bool ragged = call.rows.splits != nullptr;
  std::int64_t wide = kTile, strips = max_tiles(call.rows, kTile);
  if (tiles.variant == Mxfp8Variant::blocks) wide = mxfp8::kPieceColumns, strips = max_tiles(call.rows, kBlock);
  if (tiles.variant == Mxfp8Variant::rows) {
    wide = mxfp8::kRowColumns;
    strips = ceil_div(call.rows.capacity, ragged ? mxfp8::kSegmentRows : mxfp8::kRowWarps);
    if (ragged && strips == 0 && call.rows.groups != 0) strips = 1;
  }
  const std::int64_t column_tiles = call.columns == 0 ? 1 : ceil_div(call.columns, wide);
  if (strips > std::numeric_limits<std::int32_t>::max() / column_tiles) {
    throw NotSupported("rows.capacity is " + std::to_string(call.rows.capacity) + " with columns " +
                       std::to_string(call.columns) + ": more than 2^31 - 1 tiles");
  }
  tiles.column_tiles = static_cast<std::uint32_t>(column_tiles);
  tiles.blocks = static_cast<std::uint32_t>(strips * column_tiles);
  if (tiles.blocks != 0) {
    const auto launch = call.x_type == Format::bf16  ? launch_mxfp8_bf16
                        : call.x_type == Format::f16 ? launch_mxfp8_f16
                                                     : launch_mxfp8_f32;
    launch(tiles, config.output, stream);
  }
  if (dbias) finish_dbias(dbias_of(call), tiles.tile_sums, call.noop, stream);
}

}  // namespace assay::device
