// Random bytes drawn from the state of a generator: each kernel's loops walked in their order, with a generator that counts on from
// draw to draw, against the two layers; a quantization with draws against the same with these bytes given; what is refused.

#include "reference/recipes/random_draws.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/recipes/quantize.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// Philox4x32-10 with the state of one thread: a counter of 128 bits that goes up by one for every four words.
class ThreadGenerator {
 public:
  ThreadGenerator(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset)
      : seed_(seed),
        counter_{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset >> 32),
                 static_cast<std::uint32_t>(subsequence), static_cast<std::uint32_t>(subsequence >> 32)} {}

  std::uint32_t next() {
    if (taken_ == 4) {
      block_ = rounds();
      taken_ = 0;
      for (std::uint32_t& word : counter_) {
        if (++word != 0) break;
      }
    }
    return block_[taken_++];
  }

 private:
  std::array<std::uint32_t, 4> rounds() const {
    std::array<std::uint32_t, 4> c = counter_;
    for (std::uint32_t round = 0; round < 10; ++round) {
      const std::uint32_t key0 = static_cast<std::uint32_t>(seed_) + round * 0x9E3779B9u;
      const std::uint32_t key1 = static_cast<std::uint32_t>(seed_ >> 32) + round * 0xBB67AE85u;
      const std::uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
      c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
           static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
    }
    return c;
  }

  std::uint64_t seed_;
  std::array<std::uint32_t, 4> counter_, block_{};
  std::size_t taken_ = 4;
};

struct Bytes {
  std::vector<std::uint8_t> rowwise, columnwise;
};

// A tile that a block of threads works on, and where its codes go.
struct Walk {
  const DrawProblem& problem;
  Bytes& bytes;
  std::int64_t tile_row, tile_column;

  // Four codes along a row, or along a column.
  void row_codes(std::int64_t r, std::int64_t c, std::uint32_t word) const {
    for (std::int64_t i = 0; i < 4; ++i, word >>= 8) {
      const std::int64_t m = tile_row + r, k = tile_column + c + i;
      if (m < problem.rows && k < problem.columns) bytes.rowwise[static_cast<std::size_t>(m * problem.columns + k)] = word & 255;
    }
  }
  void column_codes(std::int64_t r, std::int64_t c, std::uint32_t word) const {
    for (std::int64_t i = 0; i < 4; ++i, word >>= 8) {
      const std::int64_t m = tile_row + r + i, k = tile_column + c;
      if (m < problem.rows && k < problem.columns) bytes.columnwise[static_cast<std::size_t>(k * problem.rows + m)] = word & 255;
    }
  }
};

void walk_vector_blockwise(const Walk& walk, int thread, ThreadGenerator& draw) {
  if (walk.problem.rowwise) {
    for (int row = thread / 8; row < 128; row += 32) {
      for (int quad = 0; quad < 4; ++quad) walk.row_codes(row, thread % 8 * 16 + quad * 4, draw.next());
    }
  }
  if (!walk.problem.columnwise) return;
  for (int pair = thread / 8; pair < 64; pair += 32) {
    for (int which = 0; which < 2; ++which) {
      for (int quad = 0; quad < 4; ++quad) walk.column_codes(thread % 8 * 16 + quad * 4, pair * 2 + which, draw.next());
    }
  }
}

void walk_tuned_1d(const Walk& walk, int thread, ThreadGenerator& draw) {
  const int warp = thread / 32, lane = thread % 32, bank_group = lane / 16;
  for (int stage = 0; stage < 4; ++stage) {
    const int top = stage / 2 * 64, left = stage % 2 * 64;
    for (int row = thread / 4; row < 64; row += 32) {
      for (int wave = 0; wave < 2; ++wave) {
        const int first = left + thread % 4 * 16 + (wave + bank_group) * 8 % 16;
        for (int half = 0; half < 2; ++half) walk.row_codes(top + row, first + half * 4, draw.next());
      }
    }
    if (!walk.problem.columnwise) continue;
    const int block = (lane / 2 + warp) % 4;
    for (int which = 0; which < 2; ++which) {
      for (int quad = 0; quad < 4; ++quad) walk.column_codes(top + block * 16 + quad * 4, left + lane * 2 + which, draw.next());
    }
  }
}

void walk_2d(const Walk& walk, int thread, ThreadGenerator& draw) {
  const int bank_group = thread % 32 / 16;
  for (int top = 0; top < 128; top += 32) {
    for (int block = 0; walk.problem.columnwise && block < 2; ++block) {
      for (int quad = 0; quad < 4; ++quad) walk.column_codes(top + block * 16 + quad * 4, thread, draw.next());
    }
    for (int row = thread / 8; walk.problem.rowwise && row < 32; row += 16) {
      for (int wave = 0; wave < 2; ++wave) {
        const int first = thread % 8 * 16 + (wave + bank_group) * 8 % 16;
        for (int half = 0; half < 2; ++half) walk.row_codes(top + row, first + half * 4, draw.next());
      }
    }
  }
}

Bytes walked(const DrawProblem& problem) {
  const auto elements = static_cast<std::size_t>(problem.rows * problem.columns);
  Bytes bytes{std::vector<std::uint8_t>(elements), std::vector<std::uint8_t>(elements)};
  const int threads = problem.draws == RandomDraws::te_vector_blockwise ? 256 : 128;
  std::uint64_t subsequence = 0;
  for (std::int64_t row = 0; row < problem.rows; row += 128) {
    for (std::int64_t column = 0; column < problem.columns; column += 128) {
      const Walk walk{problem, bytes, row, column};
      for (int thread = 0; thread < threads; ++thread) {
        ThreadGenerator draw(problem.seed, subsequence++, problem.offset);
        if (problem.draws == RandomDraws::te_vector_blockwise) walk_vector_blockwise(walk, thread, draw);
        if (problem.draws == RandomDraws::te_tuned_1d) walk_tuned_1d(walk, thread, draw);
        if (problem.draws == RandomDraws::te_2d) walk_2d(walk, thread, draw);
      }
    }
  }
  return bytes;
}

constexpr RandomDraws kKernels[] = {RandomDraws::te_vector_blockwise, RandomDraws::te_tuned_1d, RandomDraws::te_2d};
constexpr std::uint64_t k32 = std::uint64_t{1} << 32;

class RandomBytesDrawn : public testing::TestWithParam<RandomDraws> {};

TEST_P(RandomBytesDrawn, AreThoseOfTheKernelsLoops) {
  const std::array<std::int64_t, 2> sizes[] = {{128, 128}, {290, 162}, {32, 300}, {2, 16}, {130, 2}};
  for (const auto& [rows, columns] : sizes) {
    for (const auto& [seed, offset] :
         {std::pair<std::uint64_t, std::uint64_t>{0, 0}, {k32 + 17, 5}, {~k32, k32 - 1}, {3, ~std::uint64_t{0} - 2}}) {
      for (const bool rowwise : {true, false}) {
        for (const bool columnwise : {true, false}) {
          if (!rowwise && (!columnwise || GetParam() == RandomDraws::te_tuned_1d)) continue;
          const DrawProblem problem{GetParam(), rowwise, columnwise, seed, offset, rows, columns};
          const Bytes want = walked(problem);
          Bytes got{std::vector<std::uint8_t>(want.rowwise.size()), std::vector<std::uint8_t>(want.rowwise.size())};
          draw_bytes(problem, rowwise ? got.rowwise.data() : nullptr, columnwise ? got.columnwise.data() : nullptr);
          ASSERT_EQ(got.rowwise, want.rowwise) << rows << " x " << columns << " offset " << offset;
          ASSERT_EQ(got.columnwise, want.columnwise) << rows << " x " << columns << " offset " << offset;
          for (std::int64_t m = 0; m < rows; ++m) {
            for (std::int64_t k = 0; k < columns; ++k) {
              if (rowwise) {
                ASSERT_EQ(scalar::drawn_byte(problem, Direction::rowwise, m, k),
                          want.rowwise[static_cast<std::size_t>(m * columns + k)]);
              }
              if (columnwise) {
                ASSERT_EQ(scalar::drawn_byte(problem, Direction::columnwise, m, k),
                          want.columnwise[static_cast<std::size_t>(k * rows + m)]);
              }
            }
          }
        }
      }
    }
  }
}

// Every group is a call by itself, with a state of its own.
TEST_P(RandomBytesDrawn, RoundAsTheSameBytesGiven) {
  const std::vector<std::int64_t> splits{130, 0, 34};
  const std::int64_t rows = 166, columns = 144;
  std::vector<std::uint16_t> x;
  for (int i = 0; i < rows * columns; ++i) x.push_back(static_cast<std::uint16_t>(0x3E00 + i * 73 % 512));
  const std::vector<std::uint64_t> states{7, 3, 1, 1, k32 * 9 + 1, k32 - 2};
  QuantizeProblem problem;
  problem.config.recipe = Recipe::nvfp4;
  problem.config.output = Format::e2m1;
  problem.config.columnwise = problem.config.stochastic_rounding = true;
  problem.config.two_dimensional = GetParam() == RandomDraws::te_2d;
  problem.x = x.data();
  problem.rows = rows;
  problem.columns = columns;
  problem.grouped = true;
  problem.splits = splits;
  QuantizeProblem given = problem;
  problem.draws = {GetParam(), true, true, reinterpret_cast<const std::int64_t*>(states.data())};
  Bytes bytes;
  for (std::size_t g = 0; g < splits.size(); ++g) {
    const Bytes group = walked({GetParam(), true, true, states[2 * g], states[2 * g + 1], splits[g], columns});
    bytes.rowwise.insert(bytes.rowwise.end(), group.rowwise.begin(), group.rowwise.end());
    bytes.columnwise.insert(bytes.columnwise.end(), group.columnwise.begin(), group.columnwise.end());
  }
  given.rowwise_random = bytes.rowwise.data();
  given.columnwise_random = bytes.columnwise.data();

  const auto codes = [](const QuantizeProblem& of, bool fast) {
    Bytes made{std::vector<std::uint8_t>(rows * columns / 2), std::vector<std::uint8_t>(rows * columns / 2)};
    QuantizeOutput output;
    output.rowwise_data = made.rowwise.data();
    output.columnwise_data = made.columnwise.data();
    fast ? quantize(of, output) : scalar::quantize(of, output);
    return made;
  };
  const Bytes want = codes(given, true);
  for (const bool fast : {true, false}) {
    const Bytes got = codes(problem, fast);
    EXPECT_EQ(got.rowwise, want.rowwise) << fast;
    EXPECT_EQ(got.columnwise, want.columnwise) << fast;
  }
  // What is drawn does not depend on which of the outputs are requested; another state gives other codes.
  std::vector<std::uint8_t> alone(want.columnwise.size());
  QuantizeOutput output;
  output.columnwise_data = alone.data();
  quantize(problem, output);
  EXPECT_EQ(alone, want.columnwise);
  std::vector<std::uint64_t> others = states;
  others[0] ^= k32;
  problem.draws.state = reinterpret_cast<const std::int64_t*>(others.data());
  EXPECT_NE(codes(problem, true).rowwise, want.rowwise);
}

INSTANTIATE_TEST_SUITE_P(Kernels, RandomBytesDrawn, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(RandomDrawsOf, AKernelAreRefusedWhereItHasNone) {
  const std::vector<std::uint16_t> x(32 * 32, 0x3F80);
  const std::int64_t state[2] = {1, 2};
  std::vector<std::uint8_t> codes(32 * 32 / 2);
  QuantizeProblem good;
  good.config.recipe = Recipe::nvfp4;
  good.config.output = Format::e2m1;
  good.config.stochastic_rounding = true;
  good.x = x.data();
  good.rows = good.columns = 32;
  good.draws = {RandomDraws::te_tuned_1d, true, true, state};
  QuantizeOutput output;
  output.rowwise_data = codes.data();
  EXPECT_NO_THROW(quantize(good, output));
  const std::function<void(QuantizeProblem&)> changes[] = {
      [](QuantizeProblem& p) { p.config.stochastic_rounding = false; },
      [](QuantizeProblem& p) { p.config.two_dimensional = true; },
      [](QuantizeProblem& p) { p.x_type = Format::f16; },
      [](QuantizeProblem& p) { p.draws.rowwise = false; },
      [](QuantizeProblem& p) { p.draws.state = nullptr; },
      [](QuantizeProblem& p) { p.draws.assignment = RandomDraws::te_2d; },
      [](QuantizeProblem& p) { p.draws.columnwise = false, p.config.columnwise = true; },
      [](QuantizeProblem& p) { p.config.columnwise = p.config.hadamard = true; },
  };
  for (const auto& change : changes) {
    QuantizeProblem bad = good;
    change(bad);
    EXPECT_THROW(quantize(bad, output), InvalidArgument) << &change - changes;
    EXPECT_THROW(scalar::quantize(bad, output), InvalidArgument) << &change - changes;
  }
  good.draws.assignment = RandomDraws::te_vector_blockwise;
  good.config.two_dimensional = true;
  EXPECT_NO_THROW(quantize(good, output));
}

}  // namespace
}  // namespace assay
