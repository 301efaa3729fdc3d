#pragma once
// Where in a group the wrong elements lie, as a picture of at most 32 x 32 cells. Small, since every failure of a report has one.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::conformance {

struct WrongMap {
  std::int64_t group = -1;                       // -1: the output has no groups
  std::int64_t rows = 0, columns = 0;            // of the group
  std::int64_t cell_rows = 1, cell_columns = 1;  // elements of a cell: powers of two, so that tiles and blocks align with cells
  // A line for each row of cells, a letter a cell: '.', nothing is wrong; '1' to '9', up to so many ninths are.
  std::vector<std::string> cells;

  bool operator==(const WrongMap&) const = default;
};

inline constexpr std::int64_t kMostCells = 32;       // rows of cells, and columns
inline constexpr std::size_t kMostMappedGroups = 8;  // further groups have no map

// The cells of a matrix.
struct CellGrid {
  std::int64_t rows = 0, columns = 0;
  int row_shift = 0, column_shift = 0;
  std::int64_t down = 0, across = 0;  // cells

  CellGrid(std::int64_t of_rows, std::int64_t of_columns) : rows(of_rows), columns(of_columns) {
    while (cells(rows, row_shift) > kMostCells) ++row_shift;
    while (cells(columns, column_shift) > kMostCells) ++column_shift;
    down = cells(rows, row_shift);
    across = cells(columns, column_shift);
  }
  std::size_t cell(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>((row >> row_shift) * across + (column >> column_shift));
  }
  std::size_t size() const { return static_cast<std::size_t>(down * across); }

 private:
  static std::int64_t cells(std::int64_t extent, int shift) { return (extent + (std::int64_t{1} << shift) - 1) >> shift; }
};

// `wrong` counts wrong elements by cell.
inline WrongMap wrong_map(std::int64_t group, const CellGrid& grid, const std::vector<std::int64_t>& wrong) {
  constexpr std::int64_t kLevels = 9;
  WrongMap map{group, grid.rows, grid.columns, std::int64_t{1} << grid.row_shift, std::int64_t{1} << grid.column_shift, {}};
  for (std::int64_t r = 0; r < grid.down; ++r) {
    std::string line;
    const std::int64_t high = std::min(map.cell_rows, grid.rows - r * map.cell_rows);
    for (std::int64_t c = 0; c < grid.across; ++c) {
      const std::int64_t elements = high * std::min(map.cell_columns, grid.columns - c * map.cell_columns);
      const std::int64_t count = wrong[static_cast<std::size_t>(r * grid.across + c)];
      line += count == 0 ? '.' : static_cast<char>('0' + (kLevels * count + elements - 1) / elements);
    }
    map.cells.push_back(std::move(line));
  }
  return map;
}

// A digest of wrong elements: the sum of this over all of them, which does not depend on their order.
inline std::uint64_t wrong_element_hash(std::int64_t element, std::uint64_t got) {
  const auto mixed = [](std::uint64_t number) {  // SplitMix64
    number += 0x9E37'79B9'7F4A'7C15;
    number = (number ^ number >> 30) * 0xBF58'476D'1CE4'E5B9;
    number = (number ^ number >> 27) * 0x94D0'49BB'1331'11EB;
    return number ^ number >> 31;
  };
  return mixed(mixed(static_cast<std::uint64_t>(element)) ^ got);
}

}  // namespace assay::conformance
