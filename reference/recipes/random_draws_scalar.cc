#include <bit>
#include <cstdint>

#include "reference/recipes/philox.h"
#include "reference/recipes/random_draws.h"
#include "reference/types/error.h"

namespace assay::scalar {
namespace {

// The thread that draws for an element, and the number of its word.
struct Draw {
  std::int64_t thread, word;
};

// Each takes (r, c), the element's place in its tile of 128 x 128, and solves the formulas of random_draws.h for t and n.

Draw vector_blockwise(bool rowwise_too, Direction direction, std::int64_t r, std::int64_t c) {
  if (direction == Direction::rowwise) return {r % 32 * 8 + c / 16, r / 32 * 4 + c % 16 / 4};
  const std::int64_t pair = c / 2, first = rowwise_too ? 16 : 0;
  return {pair % 32 * 8 + r / 16, first + pair / 32 * 8 + c % 2 * 4 + r % 16 / 4};
}

// Which of two waves takes the half block of column c: the upper 16 lanes of a warp begin with the second half.
std::int64_t wave(std::int64_t thread, std::int64_t c) { return (c % 16 / 8 + thread % 32 / 16) % 2; }

Draw tuned_1d(bool columnwise_too, Direction direction, std::int64_t r, std::int64_t c) {
  const std::int64_t quarter = r / 64 * 2 + c / 64, first = quarter * (columnwise_too ? 16 : 8);
  r %= 64;
  c %= 64;
  if (direction == Direction::rowwise) {
    const std::int64_t thread = r % 32 * 4 + c / 16;
    return {thread, first + r / 32 * 4 + wave(thread, c) * 2 + c % 8 / 4};
  }
  const std::int64_t lane = c / 2, warp = (r / 16 + 16 - lane / 2) % 4;  // r / 16 = (lane / 2 + warp) % 4
  return {warp * 32 + lane, first + 8 + c % 2 * 4 + r % 16 / 8 * 2 + r % 8 / 4};
}

Draw two_dimensional(bool rowwise_too, bool columnwise_too, Direction direction, std::int64_t r, std::int64_t c) {
  const std::int64_t words = (rowwise_too ? 8 : 0) + (columnwise_too ? 8 : 0), first = r / 32 * words;
  r %= 32;
  if (direction == Direction::columnwise) return {c, first + r / 16 * 4 + r % 16 / 4};
  const std::int64_t thread = r % 16 * 8 + c / 16;
  return {thread, first + (columnwise_too ? 8 : 0) + r / 16 * 4 + wave(thread, c) * 2 + c % 8 / 4};
}

}  // namespace

std::uint8_t drawn_byte(const DrawProblem& problem, Direction direction, std::int64_t m, std::int64_t k) {
  const std::int64_t tiles = (problem.columns + 127) / 128, r = m % 128, c = k % 128;
  std::int64_t threads = 128;
  Draw draw{};
  switch (problem.draws) {
    case RandomDraws::given: throw InvalidArgument("draws", "given", "an assignment of draws to elements");
    case RandomDraws::te_vector_blockwise:
      threads = 256;
      draw = vector_blockwise(problem.rowwise, direction, r, c);
      break;
    case RandomDraws::te_tuned_1d: draw = tuned_1d(problem.columnwise, direction, r, c); break;
    case RandomDraws::te_2d: draw = two_dimensional(problem.rowwise, problem.columnwise, direction, r, c); break;
  }
  const auto subsequence = static_cast<std::uint64_t>(draw.thread + threads * (k / 128 + m / 128 * tiles));
  const auto word = static_cast<std::uint64_t>(draw.word);
  const std::uint32_t bits = philox_block(problem.seed, subsequence, problem.offset, word / 4)[word % 4];
  // Elements along the direction take the bytes of a word in turn, the lowest first: a rotation counts modulo 32 bits.
  const int along = static_cast<int>(direction == Direction::rowwise ? c : r);
  return static_cast<std::uint8_t>(std::rotr(bits, 8 * along));
}

}  // namespace assay::scalar
