// Rows of D that belong to no group: those that the grouped layout leaves open may hold anything, the others must be unchanged; what
// lies between the groups of x must not reach a row of a group.

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

// 5 rows at 0 and 20 at 16, in 48 aligned rows, and 4 rows more; with a mask 5 at 0 and 20 at 42, of 63.
constexpr const char* kPsum = "grouped_gemm kind=bf16 grouped_layout=psum alignment=16 splits=5,0,20 N=24 K=40 extra_rows=4";
constexpr const char* kIndices =
    "grouped_gemm kind=bf16 grouped_layout=m_indices alignment=16 splits=5,0,20 N=24 K=40 extra_rows=4";
constexpr const char* kMasked = "grouped_gemm kind=bf16 grouped_layout=masked max_m=21 splits=5,0,20 N=24 K=40";

Judgement with_row_changed(const std::string& line, std::int64_t row, std::uint8_t to) {
  Rogue rogue;
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    const assay_tensor& d = tensor(call, "d");
    const std::int64_t width = d.bytes / d.shape[0];
    std::memset(static_cast<std::uint8_t*>(d.data) + row * width, to, static_cast<std::size_t>(width));
    return status;
  };
  return judge_text(rogue, line);
}

struct Row {
  const char* line;
  std::int64_t row;
  bool free;
};

TEST(FreeRows, MayHoldAnything) {
  const Row rows[] = {
      {kPsum, 0, false},
      {kPsum, 4, false},
      {kPsum, 5, true},
      {kPsum, 15, true},
      {kPsum, 16, false},
      {kPsum, 35, false},
      {kPsum, 36, true},
      {kPsum, 47, true},
      {kPsum, 48, false},
      {kPsum, 51, false},
      {kMasked, 0, false},
      {kMasked, 5, true},
      {kMasked, 20, true},
      {kMasked, 21, true},
      {kMasked, 41, true},
      {kMasked, 42, false},
      {kMasked, 61, false},
      {kMasked, 62, true},
      // 20 rows of group 2 at 0, 5 of group 0 at 32
      {kIndices, 19, false},
      {kIndices, 20, true},
      {kIndices, 31, true},
      {kIndices, 32, false},
      {kIndices, 36, false},
      {kIndices, 37, true},
      {kIndices, 51, true},
  };
  for (const Row& each : rows) {
    for (const std::uint8_t to : {0x7F, 0x00, 0x3C}) {
      const Judgement judgement = with_row_changed(each.line, each.row, to);
      EXPECT_EQ(judgement.verdict == Verdict::passed, each.free) << each.line << " row " << each.row << "\n" << judgement.text;
    }
  }
}

// What is counted as compared are the elements of groups alone.
TEST(FreeRows, AreNotCounted) {
  for (const char* line : {kPsum, kIndices, kMasked}) {
    Rogue rogue;
    EXPECT_EQ(judge_text(rogue, line).elements, 25 * 24) << line;
  }
  Rogue rogue;
  rogue.state = [](assay_numerics& numerics) { numerics.unit[0] = numerics.plan[0] = '\0'; };  // judged by bounds
  const Judgement bounded = judge_text(rogue, kMasked);
  EXPECT_EQ(name_of(bounded.basis), name_of(CheckBasis::bound));
  EXPECT_EQ(bounded.elements, 25 * 24);
  EXPECT_EQ(bounded.elements_unbounded, 0);
}

// A kernel that takes the row behind a group for its own, and one that does not stop at the group's end.
TEST(FreeRows, LetNoPoisonIntoAGroup) {
  for (const char* line : {kPsum, kMasked}) {
    Rogue rogue;
    rogue.execute = [&](const assay_call& call) {
      const assay_tensor& x = tensor(call, "x");
      const std::int64_t width = x.bytes / x.shape[0];
      auto* rows = static_cast<std::uint8_t*>(x.data);
      const std::string kept(reinterpret_cast<char*>(rows), static_cast<std::size_t>(width));
      std::memcpy(rows, rows + 5 * width, static_cast<std::size_t>(width));
      const assay_status status = rogue.honest(call);
      std::memcpy(rows, kept.data(), kept.size());
      return status;
    };
    const Judgement judgement = judge_text(rogue, line);
    EXPECT_EQ(name_of(judgement.verdict), name_of(Verdict::failed)) << line;
    EXPECT_NE(judgement.text.find("row 0"), std::string::npos) << judgement.text;
  }
}

}  // namespace
}  // namespace assay::conformance
