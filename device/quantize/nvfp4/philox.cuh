#pragma once
// Philox4x32-10 as cuRAND's device generator has it (spec nvfp4-4.2), a block of four words at a time, on the device and on the
// host. A state is {seed, subsequence, block}: the counter is subsequence * 2^64 + block, the key the seed.
//
//   matches   reference/recipes/philox.h; golden/philox/curand_draws.csv

#include <cstdint>

#include "device/formats/convert.cuh"

namespace assay::device::nvfp4 {

struct PhiloxBlock {
  std::uint32_t word[4];
};

// The `ahead`-th block after `block`: past 2^64 blocks the counter runs on into the subsequence.
ASSAY_BOTH PhiloxBlock philox_block(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, std::uint32_t ahead) {
  constexpr int kRounds = 10;
  const std::uint64_t low = block + ahead, high = subsequence + (low < block ? 1 : 0);
  std::uint32_t c0 = static_cast<std::uint32_t>(low), c1 = static_cast<std::uint32_t>(low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(high), c3 = static_cast<std::uint32_t>(high >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = std::uint64_t{c0} * 0xD251'1F53u, second = std::uint64_t{c2} * 0xCD9E'8D57u;
    c0 = static_cast<std::uint32_t>(second >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(second);
    c2 = static_cast<std::uint32_t>(first >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(first);
    k0 += 0x9E37'79B9u;
    k1 += 0xBB67'AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace assay::device::nvfp4
