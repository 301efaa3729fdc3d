#include "reference/recipes/fp8_tile.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "reference/formats/fast_codes.h"
#include "reference/formats/x_types.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

struct E4m3 {
  static ASSAY_INLINE std::uint8_t encode(float x) { return encode_e4m3(x); }
};
struct E5m2 {
  static ASSAY_INLINE std::uint8_t encode(float x) { return encode_e5m2(x); }
};

template <class X>
ASSAY_INLINE const typename X::Storage* row_of(const Tile& tile, int r) {
  return static_cast<const typename X::Storage*>(tile.x) + r * tile.stride;
}

template <class X>
ASSAY_INLINE float amax_of_run(const typename X::Storage* x, std::int64_t count) {
  typename X::Rank largest = X::kZero;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, X::rank_of(x[i]));
  return X::amax_of(largest);
}

struct AmaxOfRun {
  const void* x;
  std::int64_t count;
  float* amax;
  template <class X>
  ASSAY_INLINE void run() const {
    *amax = amax_of_run<X>(static_cast<const typename X::Storage*>(x), count);
  }
};

struct AmaxOfRows {
  const Tile& tile;
  float* rows;
  template <class X>
  ASSAY_INLINE void run() const {
    for (int r = 0; r < tile.rows; ++r) rows[r] = amax_of_run<X>(row_of<X>(tile, r), tile.columns);
  }
};

struct AmaxOfRowsAndColumns {
  const Tile& tile;
  float *rows, *columns;
  template <class X>
  ASSAY_INLINE void run() const {
    typename X::Rank largest[kTile];
    std::fill_n(largest, kTile, X::kZero);
    for (int r = 0; r < tile.rows; ++r) {
      const typename X::Storage* const x = row_of<X>(tile, r);
      typename X::Rank row = X::kZero;
      for (int c = 0; c < tile.columns; ++c) {
        const typename X::Rank rank = X::rank_of(x[c]);
        row = std::max(row, rank);
        largest[c] = std::max(largest[c], rank);
      }
      rows[r] = X::amax_of(row);
    }
    for (int c = 0; c < tile.columns; ++c) columns[c] = X::amax_of(largest[c]);
  }
};

ASSAY_INLINE float scale_at(float scale, std::int64_t) { return scale; }
ASSAY_INLINE float scale_at(const float* scales, std::int64_t i) { return scales[i]; }

// kPositive: where x or the scale is zero the product is an exact zero (or NaN) and loses its sign.
template <class Code, bool kPositive>
ASSAY_INLINE std::uint8_t encode_product(float value, float factor) {
  float product = value * factor;
  if constexpr (kPositive) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(product);
    const bool exact_zero = (value == 0) | (factor == 0);
    product = std::bit_cast<float>(exact_zero ? bits & kMagnitude : bits);
  }
  return Code::encode(product);
}

template <class X, class Code, bool kPositive, class Scale>
ASSAY_INLINE void encode_elements(const typename X::Storage* __restrict x, std::int64_t count, Scale scale,
                                  std::uint8_t* __restrict codes) {
  for (std::int64_t i = 0; i < count; ++i) {
    codes[i] = encode_product<Code, kPositive>(X::widen(x[i]), scale_at(scale, i));
  }
}

// The same elements with one scale and with a scale each.
template <class X, class Code, bool kPositive>
ASSAY_INLINE void encode_twice(const typename X::Storage* __restrict x, std::int64_t count, float scale,
                               const float* __restrict scales, std::uint8_t* __restrict codes,
                               std::uint8_t* __restrict codes_of_scales) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = X::widen(x[i]);
    codes[i] = encode_product<Code, kPositive>(value, scale);
    codes_of_scales[i] = encode_product<Code, kPositive>(value, scales[i]);
  }
}

// Prefetches `count` bytes at `address`, which may lie past the end of the buffer: nothing is read.
template <int kForWriting>
ASSAY_INLINE void prefetch(std::uintptr_t address, int count) {
  for (int byte = 0; byte < count; byte += 64) __builtin_prefetch(reinterpret_cast<const void*>(address + byte), kForWriting);
}

// Rows of a tile are too far apart in memory for the processor's own prefetcher.
template <class X>
ASSAY_INLINE void prefetch_next(const Tile& tile, int r) {
  if (tile.next_x == nullptr) return;
  constexpr int kBytes = static_cast<int>(sizeof(typename X::Storage));
  prefetch<0>(reinterpret_cast<std::uintptr_t>(tile.next_x) + static_cast<std::uintptr_t>(r * tile.stride * kBytes),
              kTile * kBytes);
}

// Prefetches 128 codes for writing: a store that waits for its cache line delays the stores after it.
ASSAY_INLINE void prefetch_codes(const std::uint8_t* codes, std::int64_t offset) {
  prefetch<1>(reinterpret_cast<std::uintptr_t>(codes) + static_cast<std::uintptr_t>(offset), kTile);
}

enum class ScalesRun { down_rows, along_columns };

template <ScalesRun kRun>
struct EncodeTile {
  const Tile& tile;
  const float* scales;
  std::uint8_t* codes;
  std::int64_t stride;
  template <class X, class Code, bool kPositive>
  ASSAY_INLINE void encode() const {
    for (int r = 0; r < tile.rows; ++r) {
      const auto* x = row_of<X>(tile, r);
      prefetch_next<X>(tile, r);
      prefetch_codes(codes, (r + 8) * stride);
      if constexpr (kRun == ScalesRun::down_rows) {
        encode_elements<X, Code, kPositive>(x, tile.columns, scales[r], codes + r * stride);
      } else {
        encode_elements<X, Code, kPositive>(x, tile.columns, scales, codes + r * stride);
      }
    }
  }
};

struct EncodeTileTwice {
  const Tile& tile;
  const float *row_scales, *column_scales;
  std::uint8_t *row_codes, *column_codes;
  std::int64_t row_stride, column_stride;
  template <class X, class Code, bool kPositive>
  ASSAY_INLINE void encode() const {
    for (int r = 0; r < tile.rows; ++r) {
      prefetch_next<X>(tile, r);
      prefetch_codes(row_codes, (r + 8) * row_stride);
      encode_twice<X, Code, kPositive>(row_of<X>(tile, r), tile.columns, row_scales[r], column_scales, row_codes + r * row_stride,
                                       column_codes + r * column_stride);
    }
  }
};

struct EncodeRun {
  const void* x;
  std::int64_t count;
  float scale;
  std::uint8_t* codes;
  template <class X, class Code, bool kPositive>
  ASSAY_INLINE void encode() const {
    encode_elements<X, Code, kPositive>(static_cast<const typename X::Storage*>(x), count, scale, codes);
  }
};

// work.encode<type of x, output, positive zeros>()
template <class Work>
struct WithCast {
  const Fp8Cast& cast;
  const Work& work;
  template <class X>
  ASSAY_INLINE void run() const {
    const bool positive = cast.zero_sign == ZeroSign::positive;
    if (cast.output == Format::e4m3) {
      positive ? work.template encode<X, E4m3, true>() : work.template encode<X, E4m3, false>();
    } else {
      positive ? work.template encode<X, E5m2, true>() : work.template encode<X, E5m2, false>();
    }
  }
};

template <class Work>
ASSAY_INLINE void with_types(const Fp8Cast& cast, Format type, const Work& work) {
  with_x_type(type, WithCast<Work>{cast, work});
}

// Sixteen bytes in a register; the two halves of a pair of them interleaved is what every 128-bit vector unit can do.
using Bytes16 = std::uint8_t __attribute__((vector_size(16)));

ASSAY_INLINE Bytes16 low_halves(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
ASSAY_INLINE Bytes16 high_halves(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Transposes 16 x 16 bytes. Interleaving rows r and r + 8 moves the highest bit of the row index to the lowest place of
// the column index; four such rounds exchange all four bits of the two.
ASSAY_INLINE void transpose_16x16(const std::uint8_t* from, std::int64_t from_stride, std::uint8_t* to, std::int64_t to_stride) {
  Bytes16 rows[16];
  for (int r = 0; r < 16; ++r) std::memcpy(&rows[r], from + r * from_stride, sizeof(Bytes16));
  for (int round = 0; round < 4; ++round) {
    Bytes16 mixed[16];
    for (int r = 0; r < 8; ++r) {
      mixed[2 * r] = low_halves(rows[r], rows[r + 8]);
      mixed[2 * r + 1] = high_halves(rows[r], rows[r + 8]);
    }
    for (int r = 0; r < 16; ++r) rows[r] = mixed[r];
  }
  for (int r = 0; r < 16; ++r) std::memcpy(to + r * to_stride, &rows[r], sizeof(Bytes16));
}

}  // namespace

const void* element(Format type, const void* x, std::int64_t i) {
  return static_cast<const std::byte*>(x) + i * (type == Format::f32 ? 4 : 2);
}

namespace {
namespace cloned {  // with internal linkage: see reference/support/simd.h

ASSAY_CLONES void row_amaxes(const Tile& tile, float* rows) { with_x_type(tile.type, AmaxOfRows{tile, rows}); }

ASSAY_CLONES void row_and_column_amaxes(const Tile& tile, float* rows, float* columns) {
  with_x_type(tile.type, AmaxOfRowsAndColumns{tile, rows, columns});
}

ASSAY_CLONES float run_amax(Format type, const void* x, std::int64_t count) {
  float amax = 0;
  with_x_type(type, AmaxOfRun{x, count, &amax});
  return amax;
}

ASSAY_CLONES void encode_rows(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes,
                              std::int64_t stride) {
  with_types(cast, tile.type, EncodeTile<ScalesRun::down_rows>{tile, scales, codes, stride});
}

ASSAY_CLONES void encode_columns(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes,
                                 std::int64_t stride) {
  with_types(cast, tile.type, EncodeTile<ScalesRun::along_columns>{tile, scales, codes, stride});
}

ASSAY_CLONES void encode_rows_and_columns(const Fp8Cast& cast, const Tile& tile, const float* row_scales,
                                          const float* column_scales, std::uint8_t* row_codes, std::int64_t row_stride,
                                          std::uint8_t* column_codes, std::int64_t column_stride) {
  with_types(cast, tile.type,
             EncodeTileTwice{tile, row_scales, column_scales, row_codes, column_codes, row_stride, column_stride});
}

ASSAY_CLONES void encode_run(const Fp8Cast& cast, Format type, const void* x, std::int64_t count, float scale,
                             std::uint8_t* codes) {
  with_types(cast, type, EncodeRun{x, count, scale, codes});
}

}  // namespace cloned
}  // namespace

void row_amaxes(const Tile& tile, float* rows) { cloned::row_amaxes(tile, rows); }

void row_and_column_amaxes(const Tile& tile, float* rows, float* columns) { cloned::row_and_column_amaxes(tile, rows, columns); }

float run_amax(Format type, const void* x, std::int64_t count) { return cloned::run_amax(type, x, count); }

void encode_rows(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes, std::int64_t stride) {
  cloned::encode_rows(cast, tile, scales, codes, stride);
}

void encode_columns(const Fp8Cast& cast, const Tile& tile, const float* scales, std::uint8_t* codes, std::int64_t stride) {
  cloned::encode_columns(cast, tile, scales, codes, stride);
}

void encode_rows_and_columns(const Fp8Cast& cast, const Tile& tile, const float* row_scales, const float* column_scales,
                             std::uint8_t* row_codes, std::int64_t row_stride, std::uint8_t* column_codes,
                             std::int64_t column_stride) {
  cloned::encode_rows_and_columns(cast, tile, row_scales, column_scales, row_codes, row_stride, column_codes, column_stride);
}

void encode_run(const Fp8Cast& cast, Format type, const void* x, std::int64_t count, float scale, std::uint8_t* codes) {
  cloned::encode_run(cast, type, x, count, scale, codes);
}

void transpose_codes(const TileCodes& codes, int rows, int columns, std::uint8_t* transposed, std::int64_t stride) {
  // Sixteen columns at a time through a buffer in cache: the destination receives whole runs of `rows` bytes, and nothing
  // beyond them.
  alignas(64) std::uint8_t strip[16][kTile];
  for (int c = 0; c < columns; c += 16) {
    for (int r = 0; r < rows; r += 16) transpose_16x16(&codes.at[r][c], kTile, &strip[0][r], kTile);
    const int width = std::min(16, columns - c);
    for (int i = 0; i < 16; ++i) prefetch_codes(transposed, (c + 32 + i) * stride);  // the strip after the next
    for (int i = 0; i < width; ++i) {
      std::uint8_t* const to = transposed + (c + i) * stride;
      if (rows == kTile) {
        std::memcpy(to, strip[i], kTile);
      } else {
        std::memcpy(to, strip[i], static_cast<std::size_t>(rows));
      }
    }
  }
}

}  // namespace assay::fast
