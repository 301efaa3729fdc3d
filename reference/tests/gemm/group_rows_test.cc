// Rows of groups that do not follow one another: places worked out by hand, and contents that are none.

#include "reference/gemm/group_rows.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "reference/gemm/problem.h"
#include "reference/types/error.h"

namespace assay {
namespace {

std::string text(const std::vector<RowRange>& ranges) {
  std::string made;
  for (const RowRange& each : ranges) {
    made += std::to_string(each.group) + ":" + std::to_string(each.first) + "+" + std::to_string(each.rows) + "@" +
            std::to_string(each.scale_matrix) + "." + std::to_string(each.scale_row) + " ";
  }
  return made;
}

TEST(group_rows, of_indices_are_runs_of_rows) {
  const std::int32_t indices[] = {-1, -1, -1, -1, 2, 2, 2, 2, 2, -1, -1, -1, 0, 0, 0, -1, 2, -1, -1, -1, -1};
  const GroupRows rows = rows_of_indices(indices, 3, 4);
  EXPECT_EQ(text(rows.ranges), "2:4+5@0.4 0:12+3@0.12 2:16+1@0.16 ");
  EXPECT_EQ(rows.splits, (std::vector<std::int64_t>{3, 0, 6}));
  EXPECT_EQ(rows.scale_rows, (std::vector<std::int64_t>{21}));
  EXPECT_EQ(rows.rows, 21);
  EXPECT_EQ(rows.open_rows, 21);
}

TEST(group_rows, of_a_psum_start_at_the_alignment) {
  const std::int32_t ends[] = {0, 5, 8, 16, 17};
  const GroupRows rows = rows_of_psum(ends, 8, 40);
  EXPECT_EQ(text(rows.ranges), "0:0+0@0.0 1:0+5@0.0 2:8+0@0.8 3:8+8@0.8 4:16+1@0.16 ");
  EXPECT_EQ(rows.splits, (std::vector<std::int64_t>{0, 5, 0, 8, 1}));
  EXPECT_EQ(rows.open_rows, 24);
  EXPECT_EQ(rows_of_psum(ends, 8, 18).open_rows, 18);
}

TEST(group_rows, of_a_mask_are_the_first_of_each_place) {
  const std::int64_t counts[] = {3, 0, 7};
  const GroupRows rows = rows_of_masked(counts, 7);
  EXPECT_EQ(text(rows.ranges), "0:0+3@0.0 1:7+0@1.0 2:14+7@2.0 ");
  EXPECT_EQ(rows.scale_rows, (std::vector<std::int64_t>{7, 7, 7}));
  EXPECT_EQ(rows.rows, 21);
  EXPECT_EQ(rows.open_rows, 21);
}

void expect_named(const std::string& argument, const std::function<void()>& made) {
  try {
    made();
    ADD_FAILURE() << argument << ": no error";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), argument) << error.what();
  }
}

TEST(group_rows, of_wrong_contents_are_named) {
  const auto indices = [](std::vector<std::int32_t> of, std::int64_t alignment) { rows_of_indices(of, 3, alignment); };
  expect_named("m_indices[1]", [&] { indices({0, 3}, 1); });
  expect_named("m_indices[0]", [&] { indices({-2}, 1); });
  expect_named("m_indices[2]", [&] { indices({1, 1, 2, 2}, 4); });         // two groups in a block
  expect_named("m_indices[5]", [&] { indices({1, 1, 1, 1, -1, 1}, 4); });  // rows behind those of no group
  expect_named("alignment", [&] { indices({1}, 0); });
  const auto psum = [](std::vector<std::int32_t> of, std::int64_t alignment, std::int64_t rows) {
    rows_of_psum(of, alignment, rows);
  };
  expect_named("psum[0]", [&] { psum({-1}, 4, 9); });
  expect_named("psum[1]", [&] { psum({5, 7}, 4, 99); });  // before the aligned start, 8
  expect_named("psum[1]", [&] { psum({5, 17}, 4, 16); });
  expect_named("alignment", [&] { psum({5}, 0, 9); });
  const auto masked = [](std::vector<std::int64_t> of, std::int64_t max_m) { rows_of_masked(of, max_m); };
  expect_named("splits[1]", [&] { masked({4, 5}, 4); });
  expect_named("splits[0]", [&] { masked({-1}, 4); });
  expect_named("max_m", [&] { masked({0}, -1); });
}

TEST(group_rows, must_fit_the_problem) {
  const std::int64_t splits[] = {2, 1};
  const std::vector<std::uint16_t> x(64), w(64);
  std::vector<float> d(64);
  const auto problem = [&](GemmLayout layout, const GroupRows& rows) {
    GroupedGemmProblem made;
    made.layout = layout;
    made.splits = splits;
    made.group_rows = &rows;
    made.rows = rows.rows, made.N = 2, made.K = 2;
    made.x = {Format::bf16, x.data(), nullptr, false, nullptr},
    made.w = made.dy = {Format::bf16, w.data(), nullptr, false, nullptr};
    return made;
  };
  const GroupRows masked = rows_of_masked(splits, 3);
  EXPECT_EQ(view_of(problem(GemmLayout::TN, masked), d.data()).groups.at(1).d_offset, 6);
  expect_named("group_rows", [&] { view_of(problem(GemmLayout::NT, masked), d.data()); });
  expect_named("rows", [&] {
    GroupedGemmProblem made = problem(GemmLayout::TN, masked);
    made.rows = 5;
    view_of(made, d.data());
  });
  expect_named("splits", [&] {
    const std::int64_t others[] = {1, 2};
    GroupedGemmProblem made = problem(GemmLayout::TN, masked);
    made.splits = others;
    view_of(made, d.data());
  });
  const std::int32_t ends[] = {2, 5};
  const GroupRows psum = rows_of_psum(ends, 4, 8);
  EXPECT_EQ(view_of(problem(GemmLayout::NT, psum), d.data()).groups.at(1).depth, 1);
  expect_named("dy.columnwise", [&] {
    GroupedGemmProblem made = problem(GemmLayout::NT, psum);
    made.dy.columnwise = true;
    view_of(made, d.data());
  });
}

}  // namespace
}  // namespace assay
