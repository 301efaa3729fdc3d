#pragma once
// Random bytes of stochastic rounding that are drawn from a Philox state {seed, offset}, as kernels of TransformerEngine do
// (spec nvfp4-4.3). A kernel works on tiles of 128 x 128 of the matrix [M, K]; thread t of the T threads of tile (y, x) has
//
//   subsequence   t + T * (x + y * cd(K, 128))
//   word n        word n % 4 of block offset + n / 4 (philox.h)
//
// and takes its words in order, one for four elements that follow each other along the direction, the lowest byte for the first.
// The assignments differ in which four elements of its tile word n of thread t is for. `R` are words for rowwise codes, `C` for
// columnwise ones; a direction that is not drawn for takes none. (r, c) is the first of the four, from the tile's corner.
//
//   te_vector_blockwise (T = 256)   16 R, then 16 C
//     R   n = 4i + e            r = t/8 + 32i                      c = 16(t%8) + 4e
//     C   n = 8i + 4j + e       r = 16(t%8) + 4e                   c = 2(t/8 + 32i) + j
//   te_tuned_1d (T = 128)           8 R, then 8 C, for each of the four quarters s of 64 x 64: r += 64(s/2), c += 64(s%2)
//     R   n = 4i + 2w + h       r = t/4 + 32i                      c = 16(t%4) + 8((w + t%32/16) % 2) + 4h
//     C   n = 4w + 2e + h       r = 16((t%32/2 + t/32) % 4) + 8e + 4h    c = 2(t%32) + w
//   te_2d (T = 128)                 8 C, then 8 R, for each of the four bands s of 32 rows: r += 32s
//     C   n = 4i + e            r = 16i + 4e                       c = t
//     R   n = 4i + 2w + h       r = t/8 + 16i                      c = 16(t%8) + 8((w + t%32/16) % 2) + 4h

#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/types/recipe.h"

namespace assay {

enum class RandomDraws : std::uint32_t { given = 0, te_vector_blockwise = 1, te_tuned_1d = 2, te_2d = 3 };

// "te_2d". Errors (InvalidArgument): a value that is none of these.
std::string_view name_of(RandomDraws draws);
std::optional<RandomDraws> random_draws_named(std::string_view name);

// A matrix, or a group, that one call of a kernel quantizes.
struct DrawProblem {
  RandomDraws draws = RandomDraws::te_vector_blockwise;  // not given
  bool rowwise = true, columnwise = true;                // directions that the kernel draws for
  std::uint64_t seed = 0, offset = 0;
  std::int64_t rows = 0, columns = 0;
};

// A byte for each element: rowwise[m * columns + k], columnwise[k * rows + m]. Null: not stored.
void draw_bytes(const DrawProblem& problem, std::uint8_t* rowwise, std::uint8_t* columnwise);

namespace scalar {
// The byte of element (m, k) in one direction, which must be one that the kernel draws for.
std::uint8_t drawn_byte(const DrawProblem& problem, Direction direction, std::int64_t m, std::int64_t k);
}  // namespace scalar

}  // namespace assay
