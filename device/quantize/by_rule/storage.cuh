#pragma once
// Where the scale of a block lies (spec scale-rules-4.1), on the device and on the host: the places of
// reference/rules/scale_storage.h, of sizes that only the device knows.

#include <cstdint>

#include "device/formats/convert.cuh"
#include "reference/rules/scale_storage.h"

namespace assay::device::by_rule {

using StorageOrder = ScaleStorage::Order;

ASSAY_BOTH std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Bytes that the scales of block_rows x block_columns blocks take; `size`: bytes of a scale.
ASSAY_BOTH std::int64_t stored_bytes(StorageOrder order, int size, std::int64_t block_rows, std::int64_t block_columns) {
  switch (order) {
    case StorageOrder::k_major:
    case StorageOrder::mn_major: return block_rows * block_columns * size;
    case StorageOrder::tma_aligned: return block_columns * rounded_up(block_rows, 16 / size) * size;
    case StorageOrder::packed: return (block_columns + 3) / 4 * rounded_up(block_rows, 4) * 4;
    case StorageOrder::swizzled_128x4: return rounded_up(block_rows, 128) * rounded_up(block_columns, 4);
    default: return rounded_up(block_rows, 8) * rounded_up(block_columns, 4);
  }
}

// First byte of scale (i, j) of them.
ASSAY_BOTH std::int64_t scale_place(StorageOrder order, int size, std::int64_t block_rows, std::int64_t block_columns,
                                    std::int64_t i, std::int64_t j) {
  const std::int64_t tiles = (block_columns + 3) / 4;
  switch (order) {
    case StorageOrder::k_major: return (i * block_columns + j) * size;
    case StorageOrder::mn_major: return (j * block_rows + i) * size;
    case StorageOrder::tma_aligned: return (j * rounded_up(block_rows, 16 / size) + i) * size;
    case StorageOrder::packed: return (j / 4 * rounded_up(block_rows, 4) + i) * 4 + j % 4;
    case StorageOrder::swizzled_128x4: return (i / 128 * tiles + j / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
    default: return (i / 8 * tiles + j / 4) * 32 + i % 8 * 4 + j % 4;
  }
}

ASSAY_BOTH bool clears_bytes(StorageOrder order) {
  return order == StorageOrder::packed || order == StorageOrder::swizzled_128x4 || order == StorageOrder::swizzled_8x4;
}

}  // namespace assay::device::by_rule
