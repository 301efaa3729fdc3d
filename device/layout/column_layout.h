#pragma once
// Where columnwise codes of one byte lie: a matrix of R rows and C columns in groups, group t as its columns, one after another.
//
//   column_alignment 1    column j of group t begins at byte C * first_row + j * rows: groups and columns follow one another without a
//                         gap (spec layouts-1.1)
//   column_alignment 16   at byte C * (ru(first_row, 16) + 16 t) + j * ru(rows, 16): a multiple of 16 bytes, as the copy engine of SM90
//                         wants the rows of a transposed operand. What lies between columns is undefined
//
//   groups of 20 and 3 rows, 2 columns, alignment 16
//   |column 0 ....20|............|column 1 ....20|............|  gap  |column 0 ..3|.....|column 1 ..3|.....|
//   0                            32                           64      96                 112
//
// Where a group lies follows from its first row and its number, so that a block needs no other sum over the groups before it. They do not
// overlap: ru(a + b, 16) + 16 >= ru(a, 16) + ru(b, 16).

#include <cstdint>

#include "device/support/host_device.h"

namespace assay::device {

inline constexpr std::uint32_t kAlignedColumns = 16;  // bytes

// Bytes of the columns of all groups, for any splits of so many rows.
inline std::int64_t column_bytes(std::int64_t rows, int groups, std::int64_t columns, std::int64_t column_alignment) {
  if (column_alignment == 1) return rows * columns;
  return ((rows + kAlignedColumns - 1) / kAlignedColumns + groups) * kAlignedColumns * columns;
}

struct GroupColumns {
  std::uint32_t before;  // bytes before the group, for each column of the matrix
  std::uint32_t pitch;   // bytes from column to column
};

ASSAY_HD constexpr GroupColumns dense_columns(std::uint32_t first_row, std::uint32_t rows) { return {first_row, rows}; }
ASSAY_HD constexpr GroupColumns aligned_columns(std::uint32_t group, std::uint32_t first_row, std::uint32_t rows) {
  constexpr std::uint32_t kUnit = kAlignedColumns;
  return {(first_row + kUnit - 1) / kUnit * kUnit + kUnit * group, (rows + kUnit - 1) / kUnit * kUnit};
}

}  // namespace assay::device
