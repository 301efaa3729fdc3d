#include "device/linear/linear_storage.h"

#include <algorithm>

#include "device/layout/column_layout.h"
#include "device/layout/scale_layout.cuh"
#include "device/linear/linear_parts.h"

namespace assay::device {
namespace {

// The most blocks of `unit` rows that `groups` groups can have in `rows` rows, each padded separately: every group has at least
// one row, and each remaining full block adds one.
std::int64_t max_blocks(std::int64_t rows, int groups, std::int64_t unit) {
  const std::int64_t filled = std::min<std::int64_t>(rows, groups);
  return filled + (rows - filled) / unit;
}

// Scales of one direction. `blocks(unit)`: the number of blocks of `unit` rows, with each group padded separately.
template <class Blocks>
std::int64_t scale_bytes(LinearRecipe recipe, LinearTensor tensor, std::int64_t columns, bool columnwise, int groups,
                         Blocks blocks) {
  switch (recipe) {
    case LinearRecipe::none: return 0;
    case LinearRecipe::tensor_current:
    case LinearRecipe::tensor_delayed: return std::int64_t{4} * groups;
    case LinearRecipe::block:
      if (tensor == LinearTensor::weight) {
        return 4 * (columnwise ? ceil_div(columns, 128) * 4 * blocks(512) : blocks(128) * round_up(ceil_div(columns, 128), 4));
      }
      return 4 * (columnwise ? blocks(128) * round_up(columns, 4) : ceil_div(columns, 128) * 4 * blocks(4));
    case LinearRecipe::mxfp8:
      return columnwise ? 4 * blocks(128) * round_up(columns, 128) : 128 * blocks(128) * round_up(ceil_div(columns, 32), 4);
    case LinearRecipe::nvfp4:
      return columnwise ? 4 * blocks(64) * round_up(columns, 128) : 128 * blocks(128) * round_up(ceil_div(columns, 16), 4);
  }
  return 0;
}

// Lays out both directions; shared parts are laid out once.
QuantizedStorage lay_out(Parts& parts, const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                         std::int64_t columns, bool rowwise, bool columnwise, std::int64_t column_alignment) {
  QuantizedStorage storage;
  const auto add = [&](QuantizedDirection& direction, bool requested, bool along_rows, const QuantizedDirection& other) {
    if (!requested || !quantizes(config)) return;
    const QuantizedBytes bytes = quantized_bytes(config, tensor, rows, groups, columns, along_rows, column_alignment);
    direction.data = parts.take(bytes.data);
    const bool shares_scale = is_per_tensor(config.recipe), shares_amax = tensor == LinearTensor::weight;
    direction.scale_inv = shares_scale && other.data != nullptr ? other.scale_inv : parts.take(bytes.scale_inv);
    if (config.recipe == LinearRecipe::nvfp4) {
      direction.amax = shares_amax && other.data != nullptr ? other.amax : parts.take<float>(bytes.amax);
    }
  };
  add(storage.rowwise, rowwise, false, {});
  add(storage.columnwise, columnwise, true, storage.rowwise);
  return storage;
}

}  // namespace

std::int64_t QuantizedBytes::total() const {
  return round_up(data, Parts::kAlignment) + round_up(scale_inv, Parts::kAlignment) + round_up(amax, Parts::kAlignment);
}

QuantizedBytes quantized_bytes(const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                               std::int64_t columns, bool columnwise, std::int64_t column_alignment) {
  QuantizedBytes bytes;
  if (!quantizes(config)) return bytes;
  const bool nvfp4 = config.recipe == LinearRecipe::nvfp4;
  const bool aligns = columnwise && tensor != LinearTensor::weight;
  bytes.data = nvfp4 ? rows * columns / 2 : column_bytes(rows, groups, columns, aligns ? column_alignment : 1);
  bytes.amax = nvfp4 ? std::int64_t{4} * groups : 0;
  if (tensor == LinearTensor::weight) {  // all groups have equal sizes
    const std::int64_t group_rows = groups == 0 ? 0 : rows / groups;
    bytes.scale_inv = scale_bytes(config.recipe, tensor, columns, columnwise, groups,
                                  [&](std::int64_t unit) { return groups * ceil_div(group_rows, unit); });
  } else {
    bytes.scale_inv = scale_bytes(config.recipe, tensor, columns, columnwise, groups,
                                  [&](std::int64_t unit) { return max_blocks(rows, groups, unit); });
  }
  return bytes;
}

std::int64_t quantized_storage_bytes(const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                                     std::int64_t columns, bool rowwise, bool columnwise, std::int64_t column_alignment) {
  Parts parts(nullptr);
  lay_out(parts, config, tensor, rows, groups, columns, rowwise, columnwise, column_alignment);
  return parts.bytes();
}

QuantizedStorage quantized_storage(void* memory, const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                                   std::int64_t columns, bool rowwise, bool columnwise, std::int64_t column_alignment) {
  Parts parts(memory);
  return lay_out(parts, config, tensor, rows, groups, columns, rowwise, columnwise, column_alignment);
}

}  // namespace assay::device
