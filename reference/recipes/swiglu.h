#pragma once
// SwiGLU in front of a quantization (spec fp8-block-1.3): x of which blocks are made, from gate and up of bf16 or f16.
//
//   e = ex2_approx(fl(-gate * 0x1.715476p0))        approximations.h
//   h = RN(div_full(gate, fl(1 + e)))               silu, rounded to the type of gate and up
//   x = RN(fl(h * up))                              rounded to it again
//
// The matrix that is given has both side by side: row r is gate(r, 0 .. columns), then up(r, 0 .. columns).

#include <cstdint>
#include <vector>

#include "reference/recipes/fp8_tile.h"
#include "reference/recipes/quantize.h"
#include "reference/types/format.h"

namespace assay::scalar {

// x of one element. NaN where the formula gives one: of NaN, of a gate of -infinity, and of 0 times infinity.
float swiglu(Format type, float gate, float up);
// x of all rows of the groups, as codes of its type.
std::vector<std::uint16_t> swiglu_rows(const QuantizeProblem& problem);

}  // namespace assay::scalar

namespace assay::fast {

// Elements of a tile, in rows of kTile.
struct SwigluTile {
  alignas(64) std::uint16_t x[kTile][kTile];
};

// The tile of x whose first gate is element `gate` of the given matrix; it lies in `memory`. The first call expands the tables of the
// instructions, and makes one of silu for all gates of the type.
Tile swiglu_tile(Format type, const void* given, std::int64_t gate, std::int64_t columns, int tile_rows, int tile_columns,
                 SwigluTile& memory);

}  // namespace assay::fast
