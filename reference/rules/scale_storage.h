#pragma once
// Where the scale of each block lies, as data (spec scale-rules-4.1). With i the index of a block along the rows and j along the
// columns of x:
//
//   k_major           [i][j]                         the columns are contiguous
//   mn_major          [j][i]                         the rows are contiguous
//   tma_aligned       [j][i], i padded to 16 bytes
//   packed            [j/4][i] in 32-bit words, i padded to 4 words; byte j % 4 of a word, the lowest first (e8m0)
//   swizzled_128x4    tiles of 128 i x 4 j, of 512 bytes (spec layouts-3.1); e8m0 or e4m3
//   swizzled_8x4      tiles of 8 i x 4 j, of 32 bytes: element (i, j) of a tile at 4 i + j
//
// A storage is of the whole matrix, or with "_per_group" at the end of its name of each group by itself, one after another.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/types/format.h"

namespace assay {

struct ScaleStorage {
  enum class Order : std::uint8_t { k_major, mn_major, tma_aligned, packed, swizzled_128x4, swizzled_8x4 } order = Order::k_major;
  bool per_group = false;
  bool operator==(const ScaleStorage&) const = default;
};

// The scales of one matrix or group: blocks along the rows and columns, and what they take.
struct StoredScales {
  std::int64_t block_rows = 0, block_columns = 0;
  std::int64_t rows = 0, columns = 0;  // as stored, padding included; of packed: words
  std::int64_t bytes = 0;
};

std::string name_of(ScaleStorage storage);
// All names. Errors of parse (InvalidArgument): another name.
std::vector<std::string> scale_storage_names();
ScaleStorage parse_scale_storage(std::string_view argument, std::string_view name);

// Errors (InvalidArgument): a storage that `type` cannot have (packed takes e8m0; swizzled e8m0 or e4m3); sizes that overflow.
StoredScales stored_scales(ScaleStorage storage, Format type, std::int64_t block_rows, std::int64_t block_columns);

// Byte of scale (i, j), counted from the first byte of the matrix or group.
std::int64_t scale_byte(ScaleStorage storage, Format type, const StoredScales& stored, std::int64_t i, std::int64_t j);

// Whether bytes that no scale has become 0 (packed and swizzled), or are left as they are.
bool clears_padding(ScaleStorage storage);

}  // namespace assay
