// Maps of wrong elements, against counts that walk all elements of each cell.

#include "conformance/judge/compare/wrong_map.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace assay::conformance {
namespace {

using Elements = std::set<std::pair<std::int64_t, std::int64_t>>;

WrongMap mapped(std::int64_t rows, std::int64_t columns, const Elements& wrong) {
  const CellGrid grid(rows, columns);
  std::vector<std::int64_t> cells(grid.size());
  for (const auto& [row, column] : wrong) ++cells[grid.cell(row, column)];
  return wrong_map(3, grid, cells);
}

TEST(WrongMaps, SayWhichShareOfEachCellIsWrong) {
  for (const auto& [rows, columns] : {std::pair(1, 1), std::pair(1, 32), std::pair(32, 33), std::pair(33, 64), std::pair(130, 65),
                                      std::pair(257, 3), std::pair(5, 1000)}) {
    Elements wrong;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      if (i * i % 7 == 2 || i / columns == rows - 1) wrong.insert({i / columns, i % columns});
    }
    const WrongMap map = mapped(rows, columns, wrong);
    EXPECT_EQ(map.group, 3);
    ASSERT_LE(map.cells.size(), 32u);
    ASSERT_LE(map.cells[0].size(), 32u);
    EXPECT_GE(static_cast<std::int64_t>(map.cells.size()) * map.cell_rows, rows);
    EXPECT_LT((static_cast<std::int64_t>(map.cells.size()) - 1) * map.cell_rows, rows);
    for (std::size_t r = 0; r < map.cells.size(); ++r) {
      for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
        std::int64_t count = 0, elements = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t column = 0; column < columns; ++column) {
            if (row / map.cell_rows != static_cast<std::int64_t>(r) || column / map.cell_columns != static_cast<std::int64_t>(c))
              continue;
            ++elements;
            count += static_cast<std::int64_t>(wrong.count({row, column}));
          }
        }
        ASSERT_GT(elements, 0);
        int level = 0;  // the smallest number of ninths that holds them all
        while (level * elements < 9 * count) ++level;
        EXPECT_EQ(map.cells[r][c], level == 0 ? '.' : static_cast<char>('0' + level))
            << rows << " x " << columns << ": " << r << ", " << c;
      }
    }
  }
}

TEST(WrongMaps, HaveCellsOfPowersOfTwo) {
  const WrongMap map = mapped(4096, 7168, {{0, 0}});
  EXPECT_EQ(map.cell_rows, 128);
  EXPECT_EQ(map.cell_columns, 256);
  EXPECT_EQ(map.cells[0][0], '1') << "one wrong element of many still shows";
}

TEST(WrongElementHashes, TellPlacesAndValuesApart) {
  std::set<std::uint64_t> seen;
  for (std::int64_t element = 0; element < 100; ++element) {
    for (std::uint64_t got = 0; got < 100; ++got) seen.insert(wrong_element_hash(element, got));
  }
  EXPECT_EQ(seen.size(), 10000u);
}

}  // namespace
}  // namespace assay::conformance
