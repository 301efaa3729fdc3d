#include "reference/recipes/random_draws.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "reference/recipes/philox.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"
#include "reference/types/named.h"

namespace assay {
namespace {

constexpr std::string_view kNames[] = {"given", "te_vector_blockwise", "te_tuned_1d", "te_2d"};

// Four elements along a direction, by the first of them in a tile of 128 x 128.
struct Quad {
  bool rowwise;
  int row, column;
};

// The formulas of random_draws.h as they stand: word n of thread t.
Quad vector_blockwise(bool rowwise_too, int t, int n) {
  if (rowwise_too && n < 16) return {true, t / 8 + 32 * (n / 4), 16 * (t % 8) + 4 * (n % 4)};
  if (rowwise_too) n -= 16;
  return {false, 16 * (t % 8) + 4 * (n % 4), 2 * (t / 8 + 32 * (n / 8)) + n / 4 % 2};
}
int half_block(int t, int n) { return 8 * ((n / 2 + t % 32 / 16) % 2); }
Quad tuned_1d(bool columnwise_too, int t, int n) {
  const int words = columnwise_too ? 16 : 8, quarter = n / words;
  const int row = 64 * (quarter / 2), column = 64 * (quarter % 2);
  n %= words;
  if (n < 8) return {true, row + t / 4 + 32 * (n / 4), column + 16 * (t % 4) + half_block(t, n) + 4 * (n % 2)};
  n -= 8;
  return {false, row + 16 * ((t % 32 / 2 + t / 32) % 4) + 8 * (n / 2 % 2) + 4 * (n % 2), column + 2 * (t % 32) + n / 4};
}
Quad two_dimensional(bool rowwise_too, bool columnwise_too, int t, int n) {
  const int words = 8 * rowwise_too + 8 * columnwise_too, row = 32 * (n / words);
  n %= words;
  if (columnwise_too && n < 8) return {false, row + 16 * (n / 4) + 4 * (n % 4), t};
  if (columnwise_too) n -= 8;
  return {true, row + t / 8 + 16 * (n / 4), 16 * (t % 8) + half_block(t, n) + 4 * (n % 2)};
}

// A kernel on one matrix: how many threads and words it has for a tile, and what each word is for.
struct Kernel {
  const DrawProblem& problem;
  int threads() const { return problem.draws == RandomDraws::te_vector_blockwise ? 256 : 128; }
  int words() const {  // of each thread; 128 x 128 bytes for each direction
    const int directions = problem.rowwise + problem.columnwise;
    return 128 * 128 / 4 / threads() * directions;
  }
  Quad quad(int t, int n) const {
    switch (problem.draws) {
      case RandomDraws::te_vector_blockwise: return vector_blockwise(problem.rowwise, t, n);
      case RandomDraws::te_tuned_1d: return tuned_1d(problem.columnwise, t, n);
      case RandomDraws::te_2d: return two_dimensional(problem.rowwise, problem.columnwise, t, n);
      case RandomDraws::given: break;
    }
    throw InvalidArgument("draws", "given", "an assignment of draws to elements");
  }
};

// Where the bytes of a tile go, and how much of the tile is in the matrix.
struct Tile {
  std::uint8_t *rowwise, *columnwise;  // of the tile's first element; null: not stored
  std::int64_t row_pitch, column_pitch;
  int rows, columns;

  void store(const Quad& quad, std::uint32_t word) const {
    std::uint8_t* to = quad.rowwise ? rowwise : columnwise;
    if (to == nullptr || quad.row >= rows || quad.column >= columns) return;
    to += quad.rowwise ? quad.row * row_pitch + quad.column : quad.column * column_pitch + quad.row;
    const int count = std::min(4, quad.rowwise ? columns - quad.column : rows - quad.row);
    for (int byte = 0; byte < count; ++byte) to[byte] = static_cast<std::uint8_t>(word >> (8 * byte));
  }
};

// Every word of every thread of a tile, 32 threads at a time.
void draw_tile(const Kernel& kernel, std::uint64_t first_subsequence, const std::vector<Quad>& quads, const Tile& tile) {
  const DrawProblem& problem = kernel.problem;
  constexpr int kLanes = static_cast<int>(kPhiloxLanes);
  PhiloxLanes words;
  for (int t = 0; t < kernel.threads(); t += kLanes) {
    for (int n = 0; n < kernel.words(); n += 4) {
      const std::uint64_t block = problem.offset + static_cast<std::uint64_t>(n / 4);
      const bool carried = block < problem.offset;  // past 2^64 blocks the next subsequence begins
      philox_lanes(problem.seed, first_subsequence + static_cast<std::uint64_t>(t) + carried, block, words);
      for (int word = 0; word < 4; ++word) {
        for (int lane = 0; lane < kLanes; ++lane) {
          const auto at = static_cast<std::size_t>((t + lane) * kernel.words() + n + word);
          tile.store(quads[at], words[static_cast<std::size_t>(word)][static_cast<std::size_t>(lane)]);
        }
      }
    }
  }
}

}  // namespace

std::string_view name_of(RandomDraws draws) {
  const auto index = static_cast<std::uint32_t>(draws);
  require(index < std::size(kNames), "draws", index, "one of those of reference/recipes/random_draws.h (0 to 3)");
  return kNames[index];
}

std::optional<RandomDraws> random_draws_named(std::string_view name) { return named<RandomDraws>(kNames, name); }

void draw_bytes(const DrawProblem& problem, std::uint8_t* rowwise, std::uint8_t* columnwise) {
  const Kernel kernel{problem};
  const std::int64_t down = (problem.rows + 127) / 128, across = (problem.columns + 127) / 128;
  if (down == 0 || across == 0) return;
  std::vector<Quad> quads;  // of a tile: the same in all
  for (int t = 0; t < kernel.threads(); ++t) {
    for (int n = 0; n < kernel.words(); ++n) quads.push_back(kernel.quad(t, n));
  }
  parallel_for(down * across, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t row = index / across * 128, column = index % across * 128;
      const Tile tile{rowwise == nullptr ? nullptr : rowwise + row * problem.columns + column,
                      columnwise == nullptr ? nullptr : columnwise + column * problem.rows + row,
                      problem.columns,
                      problem.rows,
                      static_cast<int>(std::min<std::int64_t>(128, problem.rows - row)),
                      static_cast<int>(std::min<std::int64_t>(128, problem.columns - column))};
      draw_tile(kernel, static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(kernel.threads()), quads, tile);
    }
  });
}

}  // namespace assay
