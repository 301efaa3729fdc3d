#pragma once
// The kernels of dequantize(), each compiled separately. The checks of the call have been made. Without rows one block is still
// launched if there are groups: it checks their splits.

#include "device/dequantize/dequantize.h"

namespace assay::device::dequantization {

// Data transposed within each group: columnwise, except MXFP8, whose data lie row by row in both directions.
constexpr bool is_transposed(Recipe recipe, Direction direction) {
  return direction == Direction::columnwise && recipe != Recipe::mxfp8;
}

void launch_rows(const DequantizeCall& call, Stream stream);      // data row by row, rows of whole vectors
void launch_columns(const DequantizeCall& call, Stream stream);   // transposed data, rows of whole vectors
void launch_elements(const DequantizeCall& call, Stream stream);  // any, value by value

}  // namespace assay::device::dequantization
