#pragma once
// Whether wrong elements of a product are what other scales would give: a kernel that reads the scale of another block, or
// of another group. Each sampled wrong element is computed again with its scales taken from every other place of
// an operand's scale array, in the order of the plan, and compared by bits.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "conformance/ops/elements.h"
#include "reference/gemm/problem.h"

namespace assay::conformance {

// A wrong tile of 128 x 128 elements of D and what explains it.
struct WrongTile {
  std::int64_t group = 0;            // by number among all groups, empty ones too
  std::int64_t row = 0, column = 0;  // of the tile within its group
  bool is_explained = false;
  bool of_columns = false;            // explained by scales of the operand that supplies the columns of D; else the rows
  std::int64_t wanted = 0, read = 0;  // index in that operand's whole scale array: its first scale, and the one read in its place
};

struct ScaleFindings {
  std::vector<WrongTile> tiles;      // every wrong tile, in order
  std::int64_t looked_at = 0;        // of them
  std::int64_t explained = 0;        // of those
  std::vector<std::string> hints;    // at most two lines for a failure's text; empty where nothing was explained
  std::vector<std::string> details;  // one line for each explained tile
};

// The two scale arrays whole, as quantize() writes them: the views of `view` point into them.
struct ScaleArrays {
  std::span<const float> rows, columns;
};

// `view` has plan, operands and scales of the right answer; `numbers` the number of each of its groups among all. Kinds
// tensor and block; others return nothing. Bounded in time: of more than 512 wrong tiles, or of large ones, a sample is used.
ScaleFindings find_wrong_scales(const GroupedGemmView& view, std::span<const std::int64_t> numbers, const ScaleArrays& scales,
                                GemmLayout layout, const Elements& got, const Elements& want);

}  // namespace assay::conformance
