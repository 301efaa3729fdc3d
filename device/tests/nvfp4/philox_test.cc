// The device's Philox4x32-10 as the host compiles it: the vectors that Random123 publishes, and what cuRAND itself draws
// (golden/philox).

#include "device/quantize/nvfp4/philox.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace assay::device::nvfp4 {
namespace {

// kat_vectors of Random123 1.14, the rows "philox4x32 10".
TEST(Philox, GivesThePublishedVectors) {
  const struct {
    std::uint64_t seed, subsequence, block;  // each the lower word first
    std::uint32_t words[4];
  } rows[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0'a4093822ull, 0x03707344'13198a2eull, 0x85a308d3'243f6a88ull, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& row : rows) {
    const PhiloxBlock block = philox_block(row.seed, row.subsequence, row.block, 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], row.words[i]) << std::hex << row.seed << " word " << i;
  }
}

// cuRAND counts the offset in words: draw n is word (offset + n) mod 4 of block (offset + n) / 4.
TEST(Philox, DrawsWhatCurandDraws) {
  std::ifstream file(ASSAY_GOLDEN_DIR "/philox/curand_draws.csv");
  ASSERT_TRUE(file.good());
  int rows = 0;
  for (std::string row; std::getline(file, row); ++rows) {
    std::vector<std::string> words;
    std::stringstream stream(row);
    for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
    ASSERT_EQ(words.size(), 15u) << row;
    const std::uint64_t seed = std::stoull(words[0]), subsequence = std::stoull(words[1]), offset = std::stoull(words[2]);
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t n = offset % 4 + (i < 8 ? i : i + 40);
      const PhiloxBlock block = philox_block(seed, subsequence, offset / 4, static_cast<std::uint32_t>(n / 4));
      ASSERT_EQ(block.word[n % 4], std::stoul(words[3 + i], nullptr, 16)) << "draw " << i << " of " << row;
    }
  }
  EXPECT_EQ(rows, 7 * 6 * 13);
}

TEST(Philox, RunsOnIntoTheNextSubsequence) {
  const PhiloxBlock past = philox_block(9, 4, ~0ull, 3), next = philox_block(9, 5, 2, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(past.word[i], next.word[i]);
}

}  // namespace
}  // namespace assay::device::nvfp4
