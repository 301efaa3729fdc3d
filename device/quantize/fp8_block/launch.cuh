#pragma once
// The kernel of a call of FP8 block scaling.

#include "device/quantize/fp8_block/quantize_rows.cuh"
#include "device/quantize/fp8_block/quantize_stacks.cuh"
#include "device/quantize/fp8_block/quantize_tiles.cuh"
#include "device/quantize/fp8_block/quantize_wide.cuh"
#include "device/support/compute_capability.h"
#include "device/support/multiprocessors.h"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

// Whether groups may have any rows, so that columns of codes begin in the middle of 16 bytes or have less than 16 at their ends, as far as
// the host knows.
inline bool has_ragged_columns(const Fp8BlockTiles& tiles) {
  return tiles.column_data != nullptr && tiles.rows_multiple == 1 &&
         (tiles.rows.splits != nullptr || tiles.rows.capacity % 16 != 0 ||
          reinterpret_cast<std::uintptr_t>(tiles.column_data) % 16 != 0);
}

// The kernels of stacks and of wide blocks were measured on SM90; on older ones their shared memory may leave a block alone on an SM.
inline bool has_large_shared_memory() { return compute_capability() >= 90; }

// Whether x is one tensor with 8 turns of wide blocks or more, of which two share a multiprocessor. Where its rows are not the promised
// multiple, quantize_tiles() reports it.
inline bool is_wide(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  return tiles.rows.splits == nullptr && tiles.rows_multiple == 1 && tiles.columns != 0 &&
         tiles.blocks / 4 >= 16u * static_cast<unsigned>(multiprocessors_of(stream));
}

template <Format X, Format F, bool kSquare, unsigned kParts>
void launch_columns(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  if (has_large_shared_memory()) {
    if (has_ragged_columns(tiles)) return launch_stacks<X, F, kSquare, kParts>(tiles, stream);
    if constexpr (kParts == (kRowPart | kColumnPart)) {
      if (is_wide(tiles, stream)) return launch_wide<X, F, kSquare>(tiles, stream);
    }
  }
  launch<X, F, kSquare, kParts, true>(tiles, stream);
}

// The kernel with the fewest parts that has the requested ones.
template <Format X, Format F, bool kSquare>
void launch_parts(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  const bool row = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  const bool column = tiles.column_data != nullptr || tiles.column_scale != nullptr;
  const bool dbias = tiles.tile_sums != nullptr;
  constexpr unsigned kBoth = kRowPart | kColumnPart;
  if (!tiles.aligned) return launch<X, F, kSquare, kBoth | kDbiasPart, false>(tiles, stream);
  if constexpr (X == Format::f32) {
    if (dbias) return launch<X, F, kSquare, kBoth | kDbiasPart, true>(tiles, stream);
    if (column) return launch<X, F, kSquare, kBoth, true>(tiles, stream);
    return launch<X, F, kSquare, kRowPart, true>(tiles, stream);
  } else {
    if (dbias) {
      if (row && column) return launch_columns<X, F, kSquare, kBoth | kDbiasPart>(tiles, stream);
      if (column) return launch_columns<X, F, kSquare, kColumnPart | kDbiasPart>(tiles, stream);
      return launch<X, F, kSquare, kRowPart | kDbiasPart, true>(tiles, stream);
    }
    if (row && column) return launch_columns<X, F, kSquare, kBoth>(tiles, stream);
    if (column) return launch_columns<X, F, kSquare, kColumnPart>(tiles, stream);
    return launch_rows<X, F, kSquare, false>(tiles, stream);
  }
}

// The same for x of 16 bits that is computed from gate and up, without sums.
template <Format X, Format F, bool kSquare>
void launch_gated(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  const bool row = tiles.row_data != nullptr || tiles.row_scale != nullptr;
  const bool column = tiles.column_data != nullptr || tiles.column_scale != nullptr;
  constexpr unsigned kBoth = kRowPart | kColumnPart | kGatedPart;
  if (!tiles.aligned) return launch<X, F, kSquare, kBoth, false>(tiles, stream);
  if (!column) {
    if constexpr (kSquare) return launch<X, F, kSquare, kRowPart | kGatedPart, true>(tiles, stream);
    if constexpr (!kSquare) return launch_rows<X, F, kSquare, true>(tiles, stream);
  }
  if (row) return launch_columns<X, F, kSquare, kBoth>(tiles, stream);
  return launch_columns<X, F, kSquare, kColumnPart | kGatedPart>(tiles, stream);
}

template <bool kSquare>
void launch_gated_types(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream) {
  const bool bf16 = x_type == Format::bf16;
  if (output == Format::e4m3) {
    if (bf16) return launch_gated<Format::bf16, Format::e4m3, kSquare>(tiles, stream);
    return launch_gated<Format::f16, Format::e4m3, kSquare>(tiles, stream);
  }
  if (bf16) return launch_gated<Format::bf16, Format::e5m2, kSquare>(tiles, stream);
  return launch_gated<Format::f16, Format::e5m2, kSquare>(tiles, stream);
}

template <bool kSquare, Format X>
void launch_output(const Fp8BlockTiles& tiles, Format output, cudaStream_t stream) {
  if (output == Format::e4m3) return launch_parts<X, Format::e4m3, kSquare>(tiles, stream);
  return launch_parts<X, Format::e5m2, kSquare>(tiles, stream);
}

template <bool kSquare>
void launch_types(const Fp8BlockTiles& tiles, Format x_type, Format output, cudaStream_t stream) {
  switch (x_type) {
    case Format::bf16: return launch_output<kSquare, Format::bf16>(tiles, output, stream);
    case Format::f16: return launch_output<kSquare, Format::f16>(tiles, output, stream);
    default: return launch_output<kSquare, Format::f32>(tiles, output, stream);
  }
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
