#include "conformance/support/counter_random.h"

#include "reference/support/simd.h"

namespace assay::conformance {
namespace {

// philox4x32() of `count` counters that follow each other: element by element the same, lane beside lane.
ASSAY_CLONES void philox_run(std::uint64_t first, std::uint64_t stream, const std::array<std::uint32_t, 2>& key,
                             std::size_t count, std::uint32_t* w0, std::uint32_t* w1, std::uint32_t* w2, std::uint32_t* w3) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + i;
    std::uint32_t c0 = static_cast<std::uint32_t>(index), c1 = static_cast<std::uint32_t>(index >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(stream), c3 = static_cast<std::uint32_t>(stream >> 32);
    std::uint32_t key0 = key[0], key1 = key[1];
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c0, product1 = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c1 = static_cast<std::uint32_t>(product1);
      c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c3 = static_cast<std::uint32_t>(product0);
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    w0[i] = c0;
    w1[i] = c1;
    w2[i] = c2;
    w3[i] = c3;
  }
}

}  // namespace

void CounterRandom::fill(std::uint64_t first, std::size_t count, WordRun& run) const {
  philox_run(first, stream_, key_, count, run.words[0].data(), run.words[1].data(), run.words[2].data(), run.words[3].data());
}

}  // namespace assay::conformance
