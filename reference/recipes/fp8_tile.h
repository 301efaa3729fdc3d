#pragma once
// Layer (b) of the FP8 recipes, for a tile of at most 128 x 128 elements that fits the first caches, and for
// a plain run of elements: largest magnitudes, codes, transposition of codes. Vectorised, not threaded.

#include <cstdint>

#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay::fast {

inline constexpr int kTile = 128;

struct Tile {
  Format type;                   // bf16, f16 or f32
  const void* x;                 // its first element
  std::int64_t stride;           // elements from one row to the next
  int rows = 0, columns = 0;     // 1 to 128
  const void* next_x = nullptr;  // first element of the next tile, which is prefetched meanwhile
};

struct Fp8Cast {
  Format output;  // e4m3 or e5m2
  ZeroSign zero_sign;
};

// Element `i` of a buffer of bf16, f16 or f32.
const void* element(Format type, const void* x, std::int64_t i);

// max |x| of each row, of each column or of both; NaN passed over. Entries past the tile's extents are not written.
void row_amaxes(const Tile& tile, float* rows);
void row_and_column_amaxes(const Tile& tile, float* rows, float* columns);
// max |x| of `count` elements.
float run_amax(Format type, const void* x, std::int64_t count);

// Codes of x * scale with a scale for each row, for each column or for all. Row r goes to codes + r * stride.
void encode_rows(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes, std::int64_t stride);
void encode_columns(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes, std::int64_t stride);
// Both at once, from one reading of the tile.
void encode_rows_and_columns(const Fp8Cast& cast, const Tile& tile, const float* row_scales, const float* column_scales,
                             std::uint8_t* row_codes, std::int64_t row_stride, std::uint8_t* column_codes,
                             std::int64_t column_stride);
void encode_run(const Fp8Cast& cast, Format type, const void* x, std::int64_t count, float scale, std::uint8_t* codes);

// Codes of a tile in rows of 128 bytes.
struct alignas(64) TileCodes {
  std::uint8_t at[kTile][kTile] = {};
};

// Writes codes[r][c] to transposed[c * stride + r] for r < rows, c < columns.
void transpose_codes(const TileCodes& codes, int rows, int columns, std::uint8_t* transposed, std::int64_t stride);

}  // namespace assay::fast
