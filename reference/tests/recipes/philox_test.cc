// Philox4x32-10: the vectors that Random123 publishes, what cuRAND itself draws (golden/philox), and the two layers where words of the
// counter carry.

#include "reference/recipes/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace assay {
namespace {

// kat_vectors of Random123 1.14, the rows "philox4x32 10".
TEST(Philox, GivesThePublishedVectors) {
  struct Vector {
    PhiloxWords counter;
    std::array<std::uint32_t, 2> key;
    PhiloxWords words;
  };
  constexpr std::uint32_t kAll = 0xffffffff;
  const Vector vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{kAll, kAll, kAll, kAll}, {kAll, kAll}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Vector& each : vectors)
    EXPECT_EQ(scalar::philox4x32_10(each.counter, each.key), each.words) << std::hex << each.key[0];
}

template <class Number>
Number parsed(const std::string& text, int base) {
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  EXPECT_TRUE(result.ec == std::errc() && result.ptr == text.data() + text.size()) << text;
  return value;
}

TEST(Philox, DrawsWhatCurandDraws) {
  std::ifstream file(ASSAY_GOLDEN_DIR "/philox/curand_draws.csv");
  ASSERT_TRUE(file.good());
  std::string row;
  int rows = 0;
  while (std::getline(file, row)) {
    std::vector<std::string> words;
    std::stringstream stream(row);
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    ASSERT_EQ(words.size(), 15u) << row;
    const auto seed = parsed<std::uint64_t>(words[0], 10), subsequence = parsed<std::uint64_t>(words[1], 10),
               offset = parsed<std::uint64_t>(words[2], 10);
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t n = i < 8 ? i : i + 40;
      ASSERT_EQ(scalar::curand_draw(seed, subsequence, offset, n), parsed<std::uint32_t>(words[3 + i], 16))
          << "draw " << n << " of " << row;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 7 * 6 * 13);
}

TEST(Philox, IsTheSameInBothLayers) {
  constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{77}, k32 + 5, ~std::uint64_t{0}}) {
    for (const std::uint64_t subsequence : {std::uint64_t{0}, k32 - 7, 3 * k32 + 1}) {  // the lanes pass 2^32
      for (const std::uint64_t block : {std::uint64_t{0}, k32 - 1, k32, ~std::uint64_t{0}}) {
        PhiloxLanes lanes;
        philox_lanes(seed, subsequence, block, lanes);
        for (std::size_t lane = 0; lane < kPhiloxLanes; ++lane) {
          const PhiloxWords words = scalar::philox_block(seed, subsequence + lane, block, 0);
          for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(lanes[i][lane], words[i]) << seed << " " << subsequence << " " << block;
        }
      }
    }
  }
  // Past 2^64 the counter runs on into the subsequence.
  EXPECT_EQ(scalar::philox_block(9, 4, ~std::uint64_t{0}, 1), scalar::philox_block(9, 5, 0, 0));
}

}  // namespace
}  // namespace assay
