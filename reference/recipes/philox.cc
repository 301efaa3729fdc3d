#include "reference/recipes/philox.h"

#include "reference/support/simd.h"

namespace assay {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

ASSAY_CLONES void all_lanes(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, PhiloxLanes& words) {
  for (std::size_t lane = 0; lane < kPhiloxLanes; ++lane) {
    const std::uint64_t high = subsequence + lane;
    std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
    std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{kMultiplier0} * c0, product1 = std::uint64_t{kMultiplier1} * c2;
      c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c1 = static_cast<std::uint32_t>(product1);
      c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c3 = static_cast<std::uint32_t>(product0);
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    words[0][lane] = c0;
    words[1][lane] = c1;
    words[2][lane] = c2;
    words[3][lane] = c3;
  }
}

}  // namespace

void philox_lanes(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, PhiloxLanes& words) {
  all_lanes(seed, subsequence, block, words);
}

namespace scalar {

PhiloxWords philox4x32_10(PhiloxWords counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32), low0 = static_cast<std::uint32_t>(product0);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32), low1 = static_cast<std::uint32_t>(product1);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

PhiloxWords philox_block(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, std::uint64_t ahead) {
  const std::uint64_t low = block + ahead;
  const std::uint64_t high = low < block ? subsequence + 1 : subsequence;  // the counter has 128 bits
  return philox4x32_10({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
                        static_cast<std::uint32_t>(high >> 32)},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

std::uint32_t curand_draw(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset, std::uint64_t n) {
  const std::uint64_t word = offset % 4 + n % 4;  // the sum of offset and n may have 65 bits
  return philox_block(seed, subsequence, offset / 4, n / 4 + word / 4)[word % 4];
}

}  // namespace scalar

}  // namespace assay
