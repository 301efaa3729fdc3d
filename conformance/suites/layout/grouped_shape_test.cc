// Grouped tensors: the four forms, capacities, offsets brought by a caller, and which group an element belongs to.

#include "reference/layout/grouped_shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "reference/support/error.h"

namespace assay {
namespace {

using Values = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(GroupedShape, FourForms) {
  struct Form {
    GroupedShape shape;
    std::string_view name;
    LogicalShape logical;
    Values offsets;
  };
  const Form forms[] = {
      {uniform_groups(3, 5, 7), "uniform", {15, 7}, {0, 35, 70, 105}},
      {uniform_groups(2, 0, 7), "uniform", {0, 7}, {0, 0, 0}},
      {uniform_groups(0, 5, 7), "uniform", {0, 7}, {0}},
      {varying_first_groups(Values{2, 0, 3}, 4), "varying_first", {5, 4}, {0, 8, 8, 20}},
      {varying_first_groups(Values{}, 4), "varying_first", {0, 4}, {0}},
      {varying_first_groups(Values{2, 3}, 0), "varying_first", {5, 0}, {0, 0, 0}},
      {varying_last_groups(4, Values{2, 0, 3}), "varying_last", {4, 5}, {0, 8, 8, 20}},
      {varying_last_groups(4, Values{}), "varying_last", {4, 0}, {0}},
      {varying_both_groups(Values{2, 0, 3}, Values{5, 9, 1}), "varying_both", {1, 13}, {0, 10, 10, 13}},
      {varying_both_groups(Values{}, Values{}), "varying_both", {1, 0}, {0}},
      {varying_first_groups(Values{1 << 20, 1 << 20}, 7168), "varying_first", {1 << 21, 7168}, {0, 7516192768, 15032385536}},
  };
  for (const Form& form : forms) {
    EXPECT_EQ(name_of(form.shape.form), form.name);
    EXPECT_EQ(logical_shape(form.shape).rows, form.logical.rows) << form.name;
    EXPECT_EQ(logical_shape(form.shape).columns, form.logical.columns) << form.name;
    EXPECT_EQ(element_offsets(form.shape), form.offsets) << form.name;
    EXPECT_EQ(form.shape.groups() + 1, static_cast<std::int64_t>(form.offsets.size())) << form.name;
    EXPECT_EQ(logical_shape(form.shape).elements(), form.offsets.back()) << form.name;
  }
}

TEST(GroupedShape, ErrorsOfTheForms) {
  const std::int64_t half = kMost / 2 + 1;
  const std::string half_text = std::to_string(half);
  const auto first = [](Values extents, std::int64_t last) { return error_of([&] { varying_first_groups(extents, last); }); };
  const auto last = [](std::int64_t rows, Values extents) { return error_of([&] { varying_last_groups(rows, extents); }); };
  const auto both = [](Values a, Values b) { return error_of([&] { varying_both_groups(a, b); }); };
  const auto uniform = [](std::int64_t n, std::int64_t a, std::int64_t b) { return error_of([&] { uniform_groups(n, a, b); }); };
  EXPECT_EQ(uniform(-1, 2, 3), "groups is -1: expected a value of at least 0");
  EXPECT_EQ(uniform(1, -2, 3), "first is -2: expected a value of at least 0");
  EXPECT_EQ(uniform(1, 2, -3), "last is -3: expected a value of at least 0");
  EXPECT_EQ(uniform(2, half, 0), "first is " + half_text + ": expected a number of elements that fits int64");
  EXPECT_EQ(uniform(1, 2, half), "last is " + half_text + ": expected a number of elements that fits int64");
  EXPECT_EQ(first({1, -2}, 3), "first[1] is -2: expected a value of at least 0");
  EXPECT_EQ(first({1, 2}, -3), "last is -3: expected a value of at least 0");
  EXPECT_EQ(first({half, half}, 0), "first[1] is " + half_text + ": expected a total that fits int64");
  EXPECT_EQ(first({half}, 2), "last[0] is 2: expected a sum of first * last that fits int64");
  EXPECT_EQ(last(-1, {2}), "first is -1: expected a value of at least 0");
  EXPECT_EQ(last(1, {2, -7}), "last[1] is -7: expected a value of at least 0");
  EXPECT_EQ(last(0, {half, half}), "last[1] is " + half_text + ": expected a total that fits int64");
  EXPECT_EQ(both({1, 2}, {3}), "last.size() is 1: expected as many values as first: 2");
  EXPECT_EQ(both({1, -2}, {3, 4}), "first[1] is -2: expected a value of at least 0");
  EXPECT_EQ(error_of([] { name_of(static_cast<GroupedForm>(4)); }), "form is 4: expected a form of grouped tensor (0 to 3)");
}

TEST(GroupedShape, CapacityMayExceedTheGroupsInOneExtent) {
  const GroupedShape uniform = uniform_groups(3, 5, 7), first = varying_first_groups(Values{2, 3}, 4),
                     last = varying_last_groups(4, Values{2, 3}), both = varying_both_groups(Values{2, 3}, Values{5, 1});
  const auto error = [](const GroupedShape& shape, std::int64_t rows, std::int64_t columns) {
    return error_of([&] { check_capacity(shape, {rows, columns}); });
  };
  EXPECT_EQ(error(uniform, 15, 7), "");
  EXPECT_EQ(error(uniform, 16, 7), "capacity.rows is 16: expected 15");
  EXPECT_EQ(error(uniform, 15, 8), "capacity.columns is 8: expected 7");
  EXPECT_EQ(error(first, 5, 4), "");
  EXPECT_EQ(error(first, 65536, 4), "");
  EXPECT_EQ(error(first, 4, 4), "capacity.rows is 4: expected 5 or more");
  EXPECT_EQ(error(first, 5, 5), "capacity.columns is 5: expected 4");
  EXPECT_EQ(error(last, 4, 5), "");
  EXPECT_EQ(error(last, 4, 500), "");
  EXPECT_EQ(error(last, 4, 4), "capacity.columns is 4: expected 5 or more");
  EXPECT_EQ(error(last, 5, 5), "capacity.rows is 5: expected 4");
  EXPECT_EQ(error(both, 1, 13), "");
  EXPECT_EQ(error(both, 1, 14), "");
  EXPECT_EQ(error(both, 1, 12), "capacity.columns is 12: expected 13 or more");
  EXPECT_EQ(error(both, 13, 1), "capacity.rows is 13: expected 1");
  EXPECT_EQ(error(first, kMost, 4),
            "capacity.rows is " + std::to_string(kMost) + ": expected a number of elements that fits int64");
}

TEST(GroupedShape, OffsetsMayLeaveGapsUnlessDense) {
  const GroupedShape shape = varying_first_groups(Values{2, 0, 3}, 4);
  const auto loose = [&](Values offsets, std::int64_t buffer) { return error_of([&] { check_offsets(shape, offsets, buffer); }); };
  const auto dense = [&](Values offsets, std::int64_t buffer) {
    return error_of([&] { check_dense_offsets(shape, offsets, buffer); });
  };
  EXPECT_EQ(loose({0, 8, 8, 20}, 20), "");
  EXPECT_EQ(loose({16, 32, 48, 64}, 100), "");  // gaps before, between and after
  EXPECT_EQ(loose({0, 8, 8}, 20), "offsets.size() is 3: expected 4, one more than groups");
  EXPECT_EQ(loose({-1, 8, 8, 20}, 20), "offsets[0] is -1: expected a value of at least 0");
  EXPECT_EQ(loose({0, 7, 8, 20}, 20), "offsets[1] is 7: expected the end of group 0 or more: 0 + 8");
  EXPECT_EQ(loose({0, 8, 7, 20}, 20), "offsets[2] is 7: expected the end of group 1 or more: 8 + 0");
  EXPECT_EQ(loose({0, 8, 8, 19}, 20), "offsets[3] is 19: expected the end of group 2 or more: 8 + 12");
  EXPECT_EQ(loose({0, 8, 8, 20}, 19), "offsets[3] is 20: expected at most the elements of the buffer: 19");
  EXPECT_EQ(loose({kMost - 1, kMost, kMost, kMost}, kMost),
            "offsets[1] is " + std::to_string(kMost) + ": expected the end of group 0 or more: " + std::to_string(kMost - 1) + " + 8");
  EXPECT_EQ(dense({0, 8, 8, 20}, 20), "");
  EXPECT_EQ(dense({0, 8, 8, 20}, 4096), "");  // the buffer may be larger
  EXPECT_EQ(dense({0, 16, 16, 28}, 100), "offsets[1] is 16: expected 8, without a gap");
  EXPECT_EQ(dense({0, 8, 8, 24}, 100), "offsets[3] is 24: expected 20, without a gap");
  const GroupedShape none = varying_first_groups(Values{}, 4);
  EXPECT_EQ(error_of([&] { check_dense_offsets(none, Values{0}, 0); }), "");
  EXPECT_EQ(error_of([&] { check_dense_offsets(none, Values{}, 0); }), "offsets.size() is 0: expected 1, one more than groups");
}

TEST(GroupOf, EmptyGroupsAreNeverFoundBeforeTheirEnd) {
  const Values offsets = {0, 0, 8, 8, 8, 20, 20};  // groups of 0, 8, 0, 0, 12, 0
  EXPECT_EQ(group_of(offsets, 0), 1);
  EXPECT_EQ(group_of(offsets, 7), 1);
  EXPECT_EQ(group_of(offsets, 8), 4);
  EXPECT_EQ(group_of(offsets, 19), 4);
  EXPECT_EQ(group_of(offsets, 20), 5);  // everything after is empty
  EXPECT_EQ(group_of(offsets, kMost), 5);
  EXPECT_EQ(group_of(Values{0, 5}, 0), 0);
  EXPECT_EQ(group_of(Values{0, 5}, 5), 0);
  EXPECT_EQ(group_of(Values{0, 0, 0}, 0), 1);
  EXPECT_EQ(group_of(Values{4, 9}, 1), 0);  // before the first offset
}

TEST(GroupOf, EqualsCountingElements) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Values splits(1 + random() % 40);
    for (std::int64_t& split : splits) split = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 9);
    const Values offsets = element_offsets(varying_first_groups(splits, 3));
    std::int64_t x = 0;
    for (std::size_t t = 0; t < splits.size(); ++t) {
      for (std::int64_t e = 0; e < splits[t] * 3; ++e, ++x) {
        ASSERT_EQ(group_of(offsets, x), static_cast<std::int64_t>(t)) << "seed " << seed << " element " << x;
      }
    }
    ASSERT_EQ(group_of(offsets, x), static_cast<std::int64_t>(splits.size()) - 1);
  }
}

TEST(GroupOf, Errors) {
  EXPECT_EQ(error_of([] { group_of(Values{0}, 0); }), "offsets.size() is 1: expected 2 or more: one group has two offsets");
  EXPECT_EQ(error_of([] { group_of(Values{0, 5}, -1); }), "x is -1: expected a value of at least 0");
}

// MXFP8 groups of whole 128 x 128 tiles: the scales of group t begin at a 32nd of its elements (recipes.md 4.7).
TEST(GroupedScales, BeginAtA32ndOfTheElementsForWholeTiles) {
  const GroupedShape shapes[] = {varying_last_groups(256, Values{128, 0, 384}),
                                 varying_both_groups(Values{128, 256, 0}, Values{384, 128, 512}), uniform_groups(4, 128, 256)};
  for (const GroupedShape& shape : shapes) {
    for (const Direction direction : {Direction::rowwise, Direction::columnwise}) {
      Values want = element_offsets(shape);
      for (std::int64_t& offset : want) offset /= 32;
      EXPECT_EQ(scale_offsets(Recipe::mxfp8, direction, shape), want) << name_of(shape.form);
    }
  }
}

TEST(GroupedScales, Errors) {
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(error_of([&] {
              scale_offsets(Recipe::block_1x128, Direction::rowwise, varying_both_groups(Values{large, large}, Values{0, 1}));
            }),
            "");
  EXPECT_EQ(error_of([&] {
              scale_offsets(Recipe::mxfp8, Direction::rowwise, varying_both_groups(Values{0, large}, Values{0, 1}));
            }),
            "rows is " + std::to_string(large) + ": expected a number of elements that fits int64");
}

}  // namespace
}  // namespace assay
