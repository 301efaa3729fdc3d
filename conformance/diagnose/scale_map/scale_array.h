#pragma once
// Where the scales of one operand of a product lie in their array, and the name of a place in it.

#include <cstdint>
#include <string>
#include <vector>

#include "reference/layout/scale_shape.h"

namespace assay::conformance {

// The scale array of one operand: block b of the contraction of line i (a row or a column of D) has one scale.
struct ScaleArray {
  std::string operand;              // x, w or dy
  std::string tensor;               // "w_rowwise_scale_inv"
  std::string line;                 // what lines are counted in: "n-block", "row"
  std::string summed;               // what blocks of the contraction are counted in: "k-block"
  bool of_columns = false;          // the operand supplies the columns of D
  std::int64_t line_block = 1;      // lines that share a scale: 1 or 128
  std::vector<ScaleShape> shapes;   // of each group
  std::vector<std::int64_t> first;  // place of each group's first scale, and their total

  std::int64_t elements() const { return first.back(); }
  std::int64_t place(std::int64_t group, std::int64_t i, std::int64_t block) const;
  // Where a place from 0 to below elements() lies.
  struct Where {
    std::int64_t group = 0, row = 0, column = 0;  // of the group's scales as stored
    bool is_padding = false;
  };
  Where where(std::int64_t place) const;
  // "group 0, n-block 3, k-block 7", "padding of group 2 at [3,7]", "5 behind the array".
  std::string place_text(std::int64_t place) const;
};

}  // namespace assay::conformance
