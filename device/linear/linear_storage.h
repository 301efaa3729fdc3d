#pragma once
// Where the quantized tensors of a grouped linear layer lie, and how many bytes they need: what quantize() writes for a
// grouped tensor (spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1), for the largest sizes of any splits, so that none depends on splits.

#include <cstdint>

#include "device/layout/groups.h"
#include "reference/linear/linear_config.h"

namespace assay::device {

enum class LinearTensor : std::uint32_t { activation = 0, gradient = 1, weight = 2 };

// Whether products read codes, and not the tensors themselves.
inline bool quantizes(const LinearConfig& config) { return config.recipe != LinearRecipe::none; }

// One direction of a quantized tensor, in device memory.
struct QuantizedDirection {
  void* data = nullptr;  // null: without this direction
  void* scale_inv = nullptr;
  float* amax = nullptr;  // [G]: nvfp4
};

// Both. The per-tensor recipes have one scale_inv [G], and the weights of nvfp4 one amax [G], for both directions: the
// pointers are then equal.
struct QuantizedStorage {
  QuantizedDirection rowwise, columnwise;
};

struct QuantizedBytes {
  std::int64_t data = 0, scale_inv = 0, amax = 0;
  std::int64_t total() const;  // with every part on a boundary of 256 bytes
};

// A quantized tensor of `groups` groups in at most `rows` rows of `columns` columns; of weights `rows` is G*N, N a group.
// Recipe none: nothing. `column_alignment`: LinearCall's, of columnwise x or dy.
QuantizedBytes quantized_bytes(const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                               std::int64_t columns, bool columnwise, std::int64_t column_alignment = 1);

// Bytes of the requested directions, with shared parts counted once, and the storage in memory of that size, 256-byte
// aligned.
std::int64_t quantized_storage_bytes(const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                                     std::int64_t columns, bool rowwise, bool columnwise, std::int64_t column_alignment = 1);
QuantizedStorage quantized_storage(void* memory, const LinearConfig& config, LinearTensor tensor, std::int64_t rows, int groups,
                                   std::int64_t columns, bool rowwise, bool columnwise, std::int64_t column_alignment = 1);

}  // namespace assay::device
