// The random bytes that the threads of a tile draw into shared memory, as the host compiles them, against the reference: every case
// with draws, and states, sizes and directions of all assignments.

#include "device/quantize/nvfp4/random_draws.cuh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "reference/recipes/random_draws.h"

namespace assay::device::nvfp4 {
namespace {

constexpr int kThreads = 256;

struct Bytes {
  std::vector<std::uint8_t> rowwise, columnwise;  // [rows][columns], [columns][rows]
  explicit Bytes(const DrawProblem& problem)
      : rowwise(static_cast<std::size_t>(problem.rows * problem.columns)), columnwise(rowwise.size()) {}
};

// The tile whose first element is (row, column): its threads one after another, then what lanes read.
void draw_tile(const DrawProblem& problem, const MatrixDraws& draws, std::int64_t row, std::int64_t column, Bytes& to) {
  DrawnWords words;
  for (int thread = 0; thread < kThreads; ++thread) {
    if (problem.rowwise) draw_row_words(words, draws, row, column, thread, kThreads);
    if (problem.columnwise) draw_column_words(words, draws, row, column, thread, kThreads);
  }
  const auto byte = [](std::uint32_t word, std::int64_t at) { return static_cast<std::uint8_t>(word >> (8 * (at % 4))); };
  for (std::int64_t r = row; r < std::min(problem.rows, row + DrawnWords::kRows); ++r) {
    for (std::int64_t c = column; c < std::min(problem.columns, column + DrawnWords::kColumns); ++c) {
      const int i = static_cast<int>(r - row), j = static_cast<int>(c - column);
      if (problem.rowwise) to.rowwise[static_cast<std::size_t>(r * problem.columns + c)] = byte(words.of_row(i, j / 4 * 4), c);
      if (problem.columnwise)
        to.columnwise[static_cast<std::size_t>(c * problem.rows + r)] = byte(words.of_column(j, i / 4 * 4), r);
    }
  }
}

void expect_equal(const DrawProblem& problem) {
  Bytes got(problem), want(problem);
  draw_bytes(problem, problem.rowwise ? want.rowwise.data() : nullptr, problem.columnwise ? want.columnwise.data() : nullptr);
  const MatrixDraws draws{problem.draws, problem.rowwise, problem.columnwise, problem.seed, problem.offset, problem.columns};
  for (std::int64_t row = 0; row < problem.rows; row += DrawnWords::kRows) {
    for (std::int64_t column = 0; column < problem.columns; column += DrawnWords::kColumns) {
      draw_tile(problem, draws, row, column, got);
    }
  }
  EXPECT_EQ(got.rowwise, want.rowwise) << name_of(problem.draws) << " " << problem.rows << "x" << problem.columns;
  EXPECT_EQ(got.columnwise, want.columnwise) << name_of(problem.draws) << " " << problem.rows << "x" << problem.columns;
}

TEST(RandomDraws, AreThoseOfTheReferenceInEveryCase) {
  int lines = 0;
  for (const conformance::CaseLine& line : conformance::catalogue(conformance::Profile::standard)) {
    if (line.op != "quantize" || !line.has("draws") || line.text("draws") == "given") continue;
    SCOPED_TRACE(conformance::to_text(line));
    const Case problem = conformance::generate(line);
    const Tensor& x = problem.in.at("x");
    const auto* state = problem.in.at("rng_state").as<std::uint64_t>();
    std::vector<std::int64_t> groups{x.shape[0]};
    if (const auto splits = problem.in.find("splits"); splits != problem.in.end()) {
      const auto* rows = splits->second.as<std::int64_t>();
      groups.assign(rows, rows + splits->second.elements());
    }
    const std::string direction = line.text("direction");
    for (std::size_t t = 0; t < groups.size(); ++t) {
      expect_equal({*random_draws_named(line.text("draws")), direction != "columnwise", direction != "rowwise", state[2 * t],
                    state[2 * t + 1], groups[t], x.shape[1]});
      if (HasFailure()) return;
    }
    ++lines;
  }
  EXPECT_GE(lines, 63);
}

TEST(RandomDraws, AreThoseOfTheReferenceForAnyStateAndSize) {
  const std::uint64_t last = ~std::uint64_t{0};
  for (const RandomDraws draws : {RandomDraws::te_vector_blockwise, RandomDraws::te_tuned_1d, RandomDraws::te_2d}) {
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {128, 128}, {130, 514}, {400, 70}, {16, 1040}}) {
      for (const auto& [seed, offset] :
           {std::pair{std::uint64_t{0}, std::uint64_t{0}}, {last - 4, 0xFFFF'FFFFull}, {77ull << 32, last - 2}}) {
        for (const int directions : {1, 2, 3}) {
          const bool rowwise = directions & 1, columnwise = directions & 2;
          if (draws == RandomDraws::te_tuned_1d && !rowwise) continue;  // it has rowwise words always
          expect_equal({draws, rowwise, columnwise, seed, offset, rows, columns});
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::device::nvfp4
