#pragma once
// Which scale did each tile of a product really use? No expected value is computed: the operands are chosen so that D shows the
// place of the scale that was read.
//
//   codes     1, but the operand that supplies the rows of D is 0 outside one block of 128 along the contraction, b
//   scales    of the examined operand: each its own place in the array plus a constant, as f32
//             of the other operand: 1
//   D[i][j] = (products in block b, a power of two) * (place that was read + constant), exactly
//
// One call for each block of the contraction and each of the two operands gives the whole map. The memory before and
// behind the array, and the padding within it, continue the same count, so that reads there are reported too. Every element of
// D is examined; the report is compressed to tiles of 128 x 128, or to their halves and quarters where these differ.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/cases/case_line.h"
#include "conformance/diagnose/scale_map/scale_array.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

// The scale that a piece of D read in one block of the contraction.
struct ScaleRead {
  enum class Kind : std::uint8_t {
    place,    // of a scale; below 0 or past the array's end: of the memory around it
    nothing,  // no place gives the value in D
    several,  // elements of the piece do not agree
  };
  Kind kind = Kind::place;
  std::int64_t place = 0;  // for the first line of the piece. Where lines have scales of their own, those of the next follow
  std::uint32_t bits = 0;  // nothing, several: a wrong element of D ...
  std::int64_t row = 0, column = 0;  // ... and where it is, in its group's matrix
  std::int64_t wrong = 0;            // elements
};

// A part of a tile of 128 x 128 in which at least one element is wrong in at least one block.
struct ScalePiece {
  std::int64_t group = 0, tile_row = 0, tile_column = 0;  // of the tile within its group
  std::int64_t by_rows = 0, by_columns = 0;  // running number of the tile over all groups, row by row and column by column
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;  // of D, within the group's matrix
  std::vector<ScaleRead> reads;                             // one per block of the group's contraction
  std::vector<std::int64_t> wanted;                         // places, in the same order
  bool is_wrong(std::size_t block) const {
    return reads[block].kind != ScaleRead::Kind::place || reads[block].place != wanted[block];
  }
};

struct ScaleSide {
  ScaleArray array;
  std::int64_t calls = 0, planned = 0;  // one per block; fewer than planned where the map was not finished
  std::int64_t tiles = 0, pairs = 0;    // tiles of 128 x 128, and (tile, block) that were examined
  std::int64_t wrong_tiles = 0, wrong_pairs = 0;
  // Of the wrong pairs (of pieces): what was read in place of the right scale.
  std::int64_t others = 0, padding = 0, outside = 0, nothing = 0, several = 0;
  std::int64_t wrong_pieces = 0;   // pairs of pieces, the sum of the five above
  std::vector<ScalePiece> pieces;  // in order of the tile's number, row by row
};

struct ScaleMap {
  Verdict verdict = Verdict::unfinished;  // passed: every scale was the right one
  std::string trouble;                    // a fault of a call, or why the backend refuses it; else empty
  std::int64_t elements = 0;              // of D, over all calls
  std::vector<ScaleSide> sides;           // rows, columns of D; those that were begun
};

struct ScaleMapOptions {
  std::string operand;  // the only operand to examine; empty: both
  std::int64_t algorithm = -1;
  std::int64_t timeout_ms = 60'000;                     // one call
  std::function<void(const std::string& what)> called;  // after each call
  std::function<bool()> interrupted;                    // asked before each call
};

// Calls that the map needs: one per block and operand. Errors: as map_scales().
std::int64_t scale_map_calls(const CaseLine& line, const ScaleMapOptions& options);

// The map of a grouped_gemm line of kind block with D in f32, alpha 1, beta 0 and no bias; its data, scales and seed do not
// matter. Errors: InvalidArgument and NotSupported, before anything is called, for other lines and an operand that the
// product does not have. Failures of the backend, its memory included, are reported in verdict and trouble.
ScaleMap map_scales(Backend& backend, const CaseLine& line, const ScaleMapOptions& options);

// The list in short: "0-55", "8x7" (eight times 7), "0-880/16" (every 16th), "NaN", "several".
std::string list_text(const std::vector<ScaleRead>& reads);
std::string list_text(const std::vector<std::int64_t>& places);

// Several lines: what was read, where it is wrong, the laws that all wrong reads obey, and the first wrong pieces.
std::string text_of(const ScaleSide& side);

}  // namespace assay::conformance
