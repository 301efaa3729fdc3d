// data=step_edges: its sums in double arithmetic, on the values of the codes.

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/tests/generate/format_values.h"
#include "conformance/tests/generate/pattern_request.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kLines = 64, kLength = 208;

struct Products {
  Format type;
  std::vector<std::uint32_t> first, second;

  Products(Format of, int fraction_bits, int step) : type(of) {
    PatternRequest request = request_of("step_edges", type, kLines, kLength);
    request.fraction_bits = fraction_bits;
    request.step = step;
    request.role = Role::first;
    first = fill(request);
    request.tensor = "w";
    request.role = Role::second;
    second = fill(request);
  }
  double at(std::int64_t line, std::int64_t column, std::int64_t k) const {
    return value_of(type, first[static_cast<std::size_t>(line * kLength + k)]) *
           value_of(type, second[static_cast<std::size_t>(column * kLength + k)]);
  }
  double sum(std::int64_t line, std::int64_t column) const {
    double all = 0;
    for (std::int64_t k = 0; k < kLength; ++k) all += at(line, column, k);
    return all;
  }
  double largest(std::int64_t line, std::int64_t column) const {
    double most = 0;
    for (std::int64_t k = 0; k < kLength; ++k) most = std::max(most, std::fabs(at(line, column, k)));
    return most;
  }
};

struct Unit {
  Format type;
  int fraction_bits, step;
};
constexpr Unit kUnits[] = {{Format::bf16, 25, 16}, {Format::f16, 24, 8}, {Format::e4m3, 13, 32}, {Format::e5m2, 25, 32}};

// What is left of B, s, -B lies at the last bit of the grid and on both sides of it, and every one of these is there.
TEST(StepEdges, LeaveTheLastBitsOfTheGrid) {
  for (const Unit& unit : kUnits) {
    const Products made(unit.type, unit.fraction_bits, unit.step);
    int at[4] = {};
    for (std::int64_t line = 0; line < kLines; ++line) {
      if (line % 8 > 1) continue;
      for (const std::int64_t column : {0, 1, 2, 4, 5}) {
        const int below = std::ilogb(made.largest(line, column)) - std::ilogb(made.sum(line, column));
        ASSERT_GE(below, unit.fraction_bits - 1) << name_of(unit.type) << " line " << line;
        ASSERT_LE(below, unit.fraction_bits + 2) << name_of(unit.type) << " line " << line;
        ++at[below - unit.fraction_bits + 1];
      }
    }
    for (const int count : at) EXPECT_GE(count, 10) << name_of(unit.type);
  }
}

// B, B, s, -B, -B leave s too, but the second pair belongs to a later step wherever the line has no distance of its own.
TEST(StepEdges, CancelAcrossSteps) {
  for (const Unit& unit : kUnits) {
    const Products made(unit.type, unit.fraction_bits, unit.step);
    int across = 0;
    for (std::int64_t line = 2; line < kLines; line += 8) {
      EXPECT_LE(std::fabs(made.sum(line, 0)), std::ldexp(made.largest(line, 0), 1 - unit.fraction_bits)) << "line " << line;
      EXPECT_NE(made.sum(line, 0), 0) << "line " << line;
      std::int64_t first = kLength, last = 0;
      for (std::int64_t k = 0; k < kLength; ++k) {
        if (made.at(line, 0, k) != 0) first = std::min(first, k), last = k;
      }
      across += first / unit.step != last / unit.step;
    }
    EXPECT_GE(across, 4) << name_of(unit.type);
  }
}

// Below the floor of a zero: bf16 sums of 2^-149 that end in a term of 2^-155 to 2^-159; f16 sums of 2^-25 and 2^-41 to 2^-47.
TEST(StepEdges, SumBelowTheFloor) {
  const Products wide(Format::bf16, 25, 16), narrow(Format::f16, 25, 16);
  for (std::int64_t line = 5; line < kLines; line += 8) {
    EXPECT_EQ(std::fabs(wide.sum(line, 3)), 0x1p-149) << "line " << line;
    EXPECT_LT(wide.largest(line, 3), 0x1p-149) << "line " << line;
    const double beside = std::fabs(narrow.sum(line, 3)) - 0x1p-25;
    EXPECT_GE(beside, 0x1p-47) << "line " << line;
    EXPECT_LE(beside, 0x1p-41) << "line " << line;
  }
}

// E2M1: groups of 16 that cancel although they have products, and one that does not.
TEST(StepEdges, LeaveOneGroupOfE2m1) {
  const Products made(Format::e2m1, 35, 64);
  for (std::int64_t line = 0; line < kLines; line += 2) {
    int left = 0;
    for (std::int64_t first = 0; first < kLength; first += 16) {
      double sum = 0, size = 0;
      for (std::int64_t k = first; k < first + 16; ++k) sum += made.at(line, 0, k), size += std::fabs(made.at(line, 0, k));
      left += sum != 0;
      EXPECT_NE(size, 0) << "line " << line;
    }
    EXPECT_EQ(left, 1) << "line " << line;
  }
}

}  // namespace
}  // namespace assay::conformance
