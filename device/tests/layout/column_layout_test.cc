#include "device/layout/column_layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace assay::device {
namespace {

TEST(ColumnLayout, IsThatOfItsPicture) {
  EXPECT_EQ(aligned_columns(0, 0, 20).before * 2, 0u);
  EXPECT_EQ(aligned_columns(0, 0, 20).pitch, 32u);
  EXPECT_EQ(aligned_columns(1, 20, 3).before * 2, 96u);
  EXPECT_EQ(aligned_columns(1, 20, 3).pitch, 16u);
  EXPECT_EQ(dense_columns(20, 3).before, 20u);
  EXPECT_EQ(dense_columns(20, 3).pitch, 3u);
}

// Each column has room for its rows at a multiple of 16 bytes, behind the group before it and within the bytes of all.
void expect_sound(const std::vector<std::uint32_t>& splits) {
  std::uint32_t first_row = 0;
  std::uint64_t end = 0;
  for (std::size_t t = 0; t < splits.size(); ++t) {
    const GroupColumns group = aligned_columns(static_cast<std::uint32_t>(t), first_row, splits[t]);
    ASSERT_EQ(group.before % 16, 0u);
    ASSERT_EQ(group.pitch % 16, 0u);
    ASSERT_GE(group.pitch, splits[t]);
    ASSERT_GE(group.before, end);
    end = std::uint64_t{group.before} + group.pitch;
    first_row += splits[t];
  }
  const auto bytes = column_bytes(first_row, static_cast<int>(splits.size()), 3, 16);
  ASSERT_LE(3 * end, static_cast<std::uint64_t>(bytes));
  ASSERT_LE(bytes, 3 * (std::int64_t{first_row} + 15 + 16 * static_cast<std::int64_t>(splits.size())));
  ASSERT_EQ(column_bytes(first_row, static_cast<int>(splits.size()), 3, 1), 3 * std::int64_t{first_row});
}

TEST(ColumnLayout, GroupsDoNotOverlap) {
  for (std::uint32_t a = 0; a <= 33; ++a) {
    for (std::uint32_t b = 0; b <= 33; ++b) {
      for (const std::uint32_t c : {0u, 1u, 15u, 16u, 17u}) expect_sound({a, b, c, a});
    }
  }
  std::mt19937 draw(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint32_t> splits(1 + draw() % 1024);
    for (std::uint32_t& rows : splits) rows = draw() % 3 == 0 ? 0 : draw() % 300;
    expect_sound(splits);
  }
}

// The most rows of a call, in the most groups.
TEST(ColumnLayout, FitsInItsWords) {
  constexpr std::uint32_t kMost = (1u << 31) - (1u << 18);
  const GroupColumns last = aligned_columns(1023, kMost - 1, 1);
  EXPECT_EQ(last.before, kMost + 16u * 1023);
  EXPECT_EQ(last.pitch, 16u);
}

}  // namespace
}  // namespace assay::device
