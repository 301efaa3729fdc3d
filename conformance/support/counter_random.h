#pragma once
// Random words that depend on nothing but what they are for: (seed, stream name, index). No state is carried, so the
// order of calls, the number of threads and the standard library cannot change them.
//
//   word(index) = Philox4x32-10(counter = {index low, index high, stream low, stream high}, key = {seed low, seed high})
//
// Philox4x32 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11): ten rounds of two
// 32x32 -> 64 bit products, the key raised by a Weyl constant between rounds.

#include <array>
#include <cstdint>
#include <string_view>

namespace assay::conformance {

using Words = std::array<std::uint32_t, 4>;

constexpr Words philox4x32(Words counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// FNV-1a, 64 bits: turns a stream's name into half of the counter. Also names case lines (catalogue.h).
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

// The words of indices that follow each other: words[n][i] is word n of the i-th.
struct WordRun {
  static constexpr std::size_t kMax = 256;
  std::array<std::array<std::uint32_t, kMax>, 4> words;
};

// The four words that belong to each index of one stream.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::string_view stream)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, stream_(fnv1a(stream)) {}

  Words words(std::uint64_t index) const {
    return philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                      key_);
  }
  std::uint32_t word(std::uint64_t index) const { return words(index)[0]; }
  // The same as words(), for `count` indices from `first` on, at most WordRun::kMax.
  void fill(std::uint64_t first, std::size_t count, WordRun& run) const;

  // A value in [0, bound): the high half of a product, no division. `bound` is 1 or more.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const { return scale(word(index), bound); }
  static constexpr std::uint32_t scale(std::uint32_t word, std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{word} * bound) >> 32);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t stream_;
};

}  // namespace assay::conformance
