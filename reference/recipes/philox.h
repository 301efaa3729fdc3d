#pragma once
// Philox4x32-10 as cuRAND's device generator has it (spec nvfp4-4.2). A state is {seed, subsequence, offset}:
//
//   key        {seed low, seed high}
//   counter    subsequence * 2^64 + block, as four words, the lowest first; it counts on past 2^64 into the subsequence
//   block      four words of 32 bits: ten rounds of two 32 x 32 -> 64 bit products, the key raised by a constant in between
//
// curand_init(seed, subsequence, offset) counts the offset in words: the n-th draw is word (offset + n) % 4 of block
// (offset + n) / 4. TransformerEngine's own copy of the generator counts it in blocks.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11; cuRAND 13.0, curand_philox4x32_x.h and
// curand_kernel.h.

#include <array>
#include <cstddef>
#include <cstdint>

namespace assay {

using PhiloxWords = std::array<std::uint32_t, 4>;

// A block of each of `kPhiloxLanes` subsequences that follow each other: words[i][lane].
constexpr std::size_t kPhiloxLanes = 32;
using PhiloxLanes = std::array<std::array<std::uint32_t, kPhiloxLanes>, 4>;

// Block `block` of subsequences subsequence, subsequence + 1, ... The two together must stay below 2^128.
void philox_lanes(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, PhiloxLanes& words);

namespace scalar {

PhiloxWords philox4x32_10(PhiloxWords counter, std::array<std::uint32_t, 2> key);

// The `ahead`-th block after `block`.
PhiloxWords philox_block(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t block, std::uint64_t ahead);

// What the n-th call of curand() gives after curand_init(seed, subsequence, offset), n from 0 on.
std::uint32_t curand_draw(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset, std::uint64_t n);

}  // namespace scalar

}  // namespace assay
