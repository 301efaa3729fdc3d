// Groups that do not follow one another: the spans that the set-up kernel reads, against the ranges of the reference; contents that
// are none; and the addresses that follow from a span, worked out a second time.

#include "device/emulated_gemm/group_spans.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "device/emulated_gemm/group_operand.cuh"
#include "reference/gemm/group_rows.h"
#include "reference/layout/scale_shape.h"

namespace assay::device::emulated {
namespace {

struct Layout {
  GroupPlaces places;
  Rows rows;
  std::vector<std::int32_t> index;   // m_indices or psum
  std::vector<std::int64_t> splits;  // masked
};

std::vector<GroupSpan> spans_of(const Layout& layout, unsigned& faults) {
  std::vector<GroupSpan> spans;
  for (std::int64_t at = 0; at < span_count(layout.places, layout.rows); ++at) {
    const auto t = static_cast<int>(at);
    switch (layout.places.layout) {
      case GroupedLayout::m_indices:
        spans.push_back(span_of_indices(layout.index.data(), layout.rows, layout.places.alignment, at, faults));
        break;
      case GroupedLayout::psum:
        spans.push_back(span_of_psum(layout.index.data(), layout.rows, layout.places.alignment, t, faults));
        break;
      default: spans.push_back(span_of_masked(layout.splits[static_cast<std::size_t>(at)], layout.places.max_m, t, faults));
    }
  }
  return spans;
}

// Random places of up to 6 groups.
Layout any_layout(GroupedLayout which, std::mt19937& random) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  constexpr std::int64_t kAlignments[] = {1, 2, 5, 8, 16, 128};
  Layout made;
  made.places.layout = which;
  made.rows.groups = 1 + below(6);
  const std::int64_t alignment = kAlignments[below(6)];
  if (which == GroupedLayout::masked) {
    made.places.max_m = below(40);
    made.rows.capacity = made.rows.groups * made.places.max_m;
    for (int t = 0; t < made.rows.groups; ++t) made.splits.push_back(below(static_cast<int>(made.places.max_m) + 1));
    return made;
  }
  made.places.alignment = alignment;
  if (which == GroupedLayout::psum) {
    std::int64_t start = 0;
    for (int t = 0; t < made.rows.groups; ++t) {
      made.index.push_back(static_cast<std::int32_t>(start + below(3) * below(20)));
      start = (made.index.back() + alignment - 1) / alignment * alignment;
    }
    made.rows.capacity = start + below(3);
    return made;
  }
  for (int blocks = below(9), b = 0; b < blocks; ++b) {  // the last block may be cut off
    const auto full = static_cast<int>(alignment);
    const int rows = b + 1 == blocks ? 1 + below(full) : full, own = below(rows + 1), group = below(made.rows.groups);
    for (int i = 0; i < rows; ++i) made.index.push_back(i < own ? group : -1);
  }
  made.rows.capacity = static_cast<std::int64_t>(made.index.size());
  return made;
}

GroupRows expected(const Layout& layout) {
  switch (layout.places.layout) {
    case GroupedLayout::m_indices: return rows_of_indices(layout.index, layout.rows.groups, layout.places.alignment);
    case GroupedLayout::psum: return rows_of_psum(layout.index, layout.places.alignment, layout.rows.capacity);
    default: return rows_of_masked(layout.splits, layout.places.max_m);
  }
}

constexpr GroupedLayout kLayouts[] = {GroupedLayout::m_indices, GroupedLayout::psum, GroupedLayout::masked};

// Each row's group, -1 for none.
TEST(group_spans, have_the_rows_of_the_reference) {
  std::mt19937 random(1);
  std::int64_t with_group = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout layout = any_layout(kLayouts[round % 3], random);
    std::vector<std::int64_t> want(static_cast<std::size_t>(layout.rows.capacity), -1), got = want;
    for (const RowRange& range : expected(layout).ranges) {
      for (std::int64_t i = 0; i < range.rows; ++i) want[static_cast<std::size_t>(range.first + i)] = range.group;
    }
    unsigned faults = 0;
    for (const GroupSpan& span : spans_of(layout, faults)) {
      for (std::int64_t i = 0; i < span.rows; ++i) {
        std::int64_t& row = got[static_cast<std::size_t>(span.first + i)];
        EXPECT_EQ(row, -1) << "a row of two spans, round " << round;
        row = span.group;
        ++with_group;
      }
    }
    ASSERT_EQ(faults, 0u) << round;
    ASSERT_EQ(got, want) << round;
  }
  EXPECT_GT(with_group, 10000);
}

// One value is changed to another: the reference refuses exactly what is a fault here.
TEST(group_spans, find_every_fault_that_the_reference_finds) {
  std::mt19937 random(2);
  int refused = 0, taken = 0;
  for (int round = 0; round < 6000; ++round) {
    Layout layout = any_layout(kLayouts[round % 3], random);
    constexpr std::int64_t kValues[] = {-2147483647 - 1, -2, -1, 0, 1, 2, 5, 6, 7, 16, 39, 41, 128, 2147483647};
    const std::int64_t value = kValues[random() % std::size(kValues)];
    const std::size_t count = layout.index.empty() ? layout.splits.size() : layout.index.size();
    if (count == 0) continue;
    const std::size_t at = random() % count;
    layout.index.empty() ? (void)(layout.splits[at] = value) : (void)(layout.index[at] = static_cast<std::int32_t>(value));
    bool good = true;
    try {
      expected(layout);
    } catch (const std::exception&) {
      good = false;
    }
    unsigned faults = 0;
    spans_of(layout, faults);
    ASSERT_EQ(faults == 0, good) << "round " << round << ", value " << at << " = " << value;
    ++(good ? taken : refused);
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(taken, 500);
}

TEST(group_spans, say_which_fault) {
  struct Fault {
    std::string what;
    Layout layout;
    unsigned bits;
  };
  const auto indices = [](std::vector<std::int32_t> values) {
    Layout made{{GroupedLayout::m_indices, nullptr, 4, 0}, {0, nullptr, 3}, std::move(values), {}};
    made.rows.capacity = static_cast<std::int64_t>(made.index.size());
    return made;
  };
  const auto psum = [](std::vector<std::int32_t> values) {
    return Layout{{GroupedLayout::psum, nullptr, 8, 0}, {24, nullptr, 3}, std::move(values), {}};
  };
  const auto masked = [](std::vector<std::int64_t> values) {
    return Layout{{GroupedLayout::masked, nullptr, 1, 8}, {24, nullptr, 3}, {}, std::move(values)};
  };
  const Fault faults[] = {
      {"a group that does not exist", indices({0, 0, 3, -1}), kStatusInvalidIndex},
      {"below -1", indices({0, -2, -1, -1}), kStatusInvalidIndex},
      {"two groups in a block", indices({0, 1, -1, -1}), kStatusInvalidIndex},
      {"a row after one of no group", indices({0, -1, 0, -1}), kStatusInvalidIndex},
      {"a block that starts with no group", indices({-1, 2, 2, 2}), kStatusInvalidIndex},
      {"the last block, cut off", indices({0, 0, 0, 0, 1, 2}), kStatusInvalidIndex},
      {"an end before its start", psum({5, 6, 16}), kStatusNegativeSplit},
      {"the first end below 0", psum({-1, 8, 16}), kStatusNegativeSplit},
      {"past the rows", psum({5, 16, 25}), kStatusSplitsExceedRows},
      {"far past the rows", psum({5, 2147483647, 24}), kStatusSplitsExceedRows | kStatusNegativeSplit},
      {"a negative count", masked({3, -1, 8}), kStatusNegativeSplit},
      {"more than max_m", masked({3, 9, 8}), kStatusSplitsExceedRows},
  };
  for (const Fault& fault : faults) {
    unsigned found = 0;
    for (const GroupSpan& span : spans_of(fault.layout, found)) EXPECT_LE(span.first + span.rows, 24) << fault.what;
    EXPECT_EQ(found, fault.bits) << fault.what;
  }
}

// ---- addresses ------------------------------------------------------------------------------------------------------

struct Operand {
  std::string what;
  Recipe recipe;
  Scales scales;
  Format type;
  std::int64_t block;
};

// Scale (row, block of K) of a matrix of `rows` rows by K, compact, from its first one (spec fp8-block-2.1, mxfp8-2.1, nvfp4-2.1).
std::int64_t scale_at(const Operand& operand, std::int64_t rows, std::int64_t K, std::int64_t row, std::int64_t block) {
  const auto up4 = [](std::int64_t value) { return (value + 3) / 4 * 4; };
  if (operand.scales == Scales::f32_1x128) return block * up4(rows) + row;
  return row * up4((K + operand.block - 1) / operand.block) + block;
}

TEST(group_operand, rows_and_their_scales_have_the_places_of_the_matrix) {
  const Operand operands[] = {
      {"fp8_block", Recipe::block_1x128, Scales::f32_1x128, Format::e4m3, 128},
      {"mxfp8", Recipe::mxfp8, Scales::e8m0, Format::e5m2, 32},
      {"nvfp4", Recipe::nvfp4, Scales::e4m3, Format::e2m1, 16},
  };
  constexpr std::int64_t K = 336;
  std::mt19937 random(3);
  std::vector<std::uint8_t> codes(1), scale_bytes(1);  // addresses alone are compared
  for (int round = 0; round < 900; ++round) {
    const Layout layout = any_layout(kLayouts[round % 3], random);
    const Operand& operand = operands[round / 3 % 3];
    SCOPED_TRACE(operand.what + ", round " + std::to_string(round));
    SetupCall call{};
    call.layout = GemmLayout::TN;
    call.places = layout.places;
    call.rows = layout.rows;
    call.N = 24, call.K = K;
    OperandSource source;
    source.type = operand.type, source.scales = operand.scales, source.columns = K;
    source.data = codes.data(), source.scale_inv = scale_bytes.data();
    const std::int64_t width = operand.type == Format::e2m1 ? K / 2 : K, unit = operand.scales == Scales::f32_1x128 ? 4 : 1;
    const bool masked = layout.places.layout == GroupedLayout::masked;
    const std::int64_t matrix_rows = masked ? layout.places.max_m : layout.rows.capacity;
    const std::int64_t of_a_matrix = scale_shape(operand.recipe, Direction::rowwise, matrix_rows, K).elements();
    unsigned faults = 0;
    for (const GroupSpan& span : spans_of(layout, faults)) {
      if (span.rows == 0) continue;
      const GroupOperand made = group_operand(source, operand_place(call, source, span, -1), span.group, nullptr, nullptr);
      EXPECT_EQ(made.data - codes.data(), span.first * width);
      EXPECT_EQ(made.row_stride, K);
      EXPECT_EQ(made.k_stride, 1);
      const std::int64_t begin = (static_cast<const std::uint8_t*>(made.scale) - scale_bytes.data()) / unit;
      for (const std::int64_t i : {std::int64_t{0}, span.rows - 1}) {
        for (const std::int64_t k : {std::int64_t{0}, operand.block, K - 1}) {
          const std::int64_t matrix = masked ? span.group : 0, row = span.first - matrix * layout.places.max_m + i;
          const std::int64_t got = begin + (i >> made.i_shift) * made.i_stride + (k >> made.k_shift) * made.block_stride;
          ASSERT_EQ(got, matrix * of_a_matrix + scale_at(operand, matrix_rows, K, row, k / operand.block)) << i << " " << k;
        }
      }
    }
    ASSERT_EQ(faults, 0u);
  }
}

TEST(group_operand, weights_belong_to_the_group_of_a_span) {
  SetupCall call{};
  call.layout = GemmLayout::TN;
  call.places = {GroupedLayout::m_indices, nullptr, 16, 0};
  call.rows = {64, nullptr, 4};
  call.N = 200, call.K = 300;
  OperandSource w;
  w.type = Format::e4m3, w.scales = Scales::f32_128x128, w.weight = true, w.columns = 300;
  std::vector<std::uint8_t> codes(1);
  w.data = w.scale_inv = codes.data();
  const OperandPlace place = operand_place(call, w, {3, 16, 5}, 0);
  EXPECT_EQ(place.first, 600);
  EXPECT_EQ(place.scale_begin, 3 * scale_shape(Recipe::block_128x128, Direction::rowwise, 200, 300).elements());
  OperandSource x;
  x.type = Format::e4m3, x.scales = Scales::one, x.columns = 300;
  x.data = x.scale_inv = codes.data();
  EXPECT_EQ(operand_place(call, x, {3, 16, 5}, 0).scale_begin, 3);  // one a group, whichever block it is
}

// Layout NT: scales of each group by itself, data at the group's own start.
TEST(group_operand, sums_over_rows_start_where_the_group_starts) {
  SetupCall call{};
  call.layout = GemmLayout::NT;
  call.kind = GemmKind::mxfp8;
  call.places = {GroupedLayout::psum, nullptr, 32, 0};
  call.rows = {128, nullptr, 2};
  call.N = 64, call.K = 96;
  OperandSource dy;
  dy.type = Format::e4m3, dy.scales = Scales::e8m0, dy.along_rows = dy.columnwise = true, dy.columns = 64;
  std::vector<std::uint8_t> codes(1), scale_bytes(1);
  dy.data = codes.data(), dy.scale_inv = scale_bytes.data();
  const GroupSpan second{1, 64, 50};  // the first has 40 rows
  const std::int64_t before = scale_shape(Recipe::mxfp8, Direction::columnwise, 40, 64).elements();
  const GroupOperand made = group_operand(dy, operand_place(call, dy, second, before), 1, nullptr, nullptr);
  EXPECT_EQ(made.data - codes.data(), 64 * 64);
  EXPECT_EQ(made.k_stride, 64);
  EXPECT_EQ(made.row_stride, 1);
  EXPECT_EQ(static_cast<const std::uint8_t*>(made.scale) - scale_bytes.data(), before);
}

}  // namespace
}  // namespace assay::device::emulated
