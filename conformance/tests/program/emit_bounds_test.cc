// emit --c of products that are compared with intervals: what lies in its interval passes, whichever word it is, and nothing beside it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <regex>

#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"

namespace assay::conformance {
namespace {

using golden::TemporaryFolder;

// Sums in double in the order of k: another order and another rounding than any plan has. ASSAY_PUT="WORD BITS" puts these bits there.
constexpr const char* kProduct = R"(#define ASSAY_DECLARATIONS_ONLY
#include "case.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double value(const struct assay_case_input *in, int64_t at) {
  const uint32_t bits = (uint32_t)((const uint16_t *)in->data)[at] << 16;
  float held;
  memcpy(&held, &bits, 4);
  return held;
}
int assay_run(const struct assay_case *call) {
  const struct assay_case_input *x = &call->inputs[ASSAY_IN_x], *w = &call->inputs[ASSAY_IN_w];
  const struct assay_case_output *d = &call->outputs[ASSAY_OUT_d];
  const char *put = getenv("ASSAY_PUT");
  unsigned word, bits;
  int64_t row, column, k;
  for (row = 0; row < x->shape[0]; ++row) {
    for (column = 0; column < d->shape[1]; ++column) {
      double sum = 0;
      for (k = 0; k < x->shape[1]; ++k) sum += value(x, row * x->shape[1] + k) * value(w, column * x->shape[1] + k);
      ((float *)d->data)[row * d->shape[1] + column] = (float)sum;
    }
  }
  if (put != NULL && sscanf(put, "%u %x", &word, &bits) == 2) ((uint32_t *)d->data)[word] = bits;
  return 0;
}
)";

const char* const kLine = "grouped_gemm kind=bf16 d_type=f32 splits=5 N=6 K=96 seed=3";

struct Emitted {
  TemporaryFolder folder;

  explicit Emitted(std::vector<std::string> more, const std::string& line = kLine) {
    more.insert(more.begin(), {"emit", "--c", line, "-o", (folder / "case.c").string()});
    const Ran ran = assay(more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    golden::put_file(folder / "run.c", std::as_bytes(std::span(std::string_view(kProduct))));
    const Ran built =
        run_program({ASSAY_C_COMPILER, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", (folder / "case.c").string(),
                     (folder / "run.c").string(), "-o", (folder / "program").string()});
    EXPECT_EQ(built.code, 0) << built.out << built.err;
  }
  Ran run() const { return run_program({(folder / "program").string()}); }
  Ran put(int word, std::uint32_t bits) const {
    return run_program({(folder / "program").string()}, {{{"ASSAY_PUT", fmt::format("{} {:x}", word, bits)}}, false, {}});
  }
};

// The two ends that a failure shows.
std::optional<std::pair<std::uint32_t, std::uint32_t>> interval_in(const std::string& text) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("want 0x([0-9A-F]{8}) to 0x([0-9A-F]{8})\n"))) return std::nullopt;
  return std::pair(static_cast<std::uint32_t>(std::stoul(found[1], nullptr, 16)),
                   static_cast<std::uint32_t>(std::stoul(found[2], nullptr, 16)));
}

TEST(EmittedBounds, WordsInTheIntervalPassAndOthersFail) {
  const Emitted bits({}), bounds({"--bounds"}), of_unit({"--bounds", "--unit", "sm90.wgmma.f16"});
  EXPECT_EQ(bits.run().code, 1) << "sums in double have other bits than the plan gives";
  EXPECT_EQ(bounds.run().code, 0) << bounds.run().out;
  EXPECT_EQ(bounds.run().out, fmt::format("passed  {}\n  30 words as expected, 0 unchanged, over two fills\n", kLine));
  EXPECT_EQ(of_unit.run().code, 0) << of_unit.run().out;
  for (const int word : {0, 13, 29}) {
    SCOPED_TRACE(word);
    const Ran wrong = bounds.put(word, 0x7F7F'FFFF);
    EXPECT_EQ(wrong.code, 1);
    EXPECT_NE(wrong.out.find("output  d f32: 1 of 30 words differ\n"), std::string::npos) << wrong.out;
    EXPECT_NE(wrong.out.find(fmt::format("first   word {} [{},{}]: got 0x7F7FFFFF", word, word / 6, word % 6)), std::string::npos)
        << wrong.out;
    const auto ends = interval_in(wrong.out);
    ASSERT_TRUE(ends) << wrong.out;
    const float least = std::bit_cast<float>(ends->first), most = std::bit_cast<float>(ends->second);
    EXPECT_LT(least, most);
    EXPECT_LT(most - least, 0.01f);  // sums of 96 products below 1
    for (const float inside : {least, most, least + (most - least) / 2})
      EXPECT_EQ(bounds.put(word, std::bit_cast<std::uint32_t>(inside)).code, 0) << inside;
    for (const float outside : {std::nextafter(least, -1e30f), std::nextafter(most, 1e30f), -(most + least), INFINITY, NAN})
      EXPECT_EQ(bounds.put(word, std::bit_cast<std::uint32_t>(outside)).code, 1) << outside;
    // The interval of one unit is no wider.
    const auto narrower = interval_in(of_unit.put(word, 0x7F7F'FFFF).out);
    ASSERT_TRUE(narrower);
    EXPECT_GE(std::bit_cast<float>(narrower->first), least);
    EXPECT_LE(std::bit_cast<float>(narrower->second), most);
  }
}

TEST(EmittedBounds, ACaseWithBoundsNeedsNoOption) {
  const std::string line = std::string(kLine) + " check=bound";
  const Emitted bounds({}, line);
  EXPECT_EQ(bounds.run().code, 0) << bounds.run().out;
  EXPECT_EQ(bounds.put(3, 0x7F7F'FFFF).code, 1);
  // With a plan it has bits.
  const Emitted bits({"--plan", "unit=sm90.wgmma.f16"}, line);
  EXPECT_EQ(bits.run().code, 1);
}

// Without an addition there is one right word; a zero may have either sign, and where the result is a NaN any NaN is right.
TEST(EmittedBounds, ExactElementsHaveOneWord) {
  const Emitted zeros({"--bounds"}, "grouped_gemm kind=bf16 splits=5 N=6 K=96 d_type=f32 data=zeros");
  EXPECT_EQ(zeros.run().code, 0) << zeros.run().out;
  EXPECT_EQ(zeros.put(4, 0x8000'0000).code, 0);
  const Ran wrong = zeros.put(4, 1);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("want 0x00000000\n"), std::string::npos) << wrong.out;
}

}  // namespace
}  // namespace assay::conformance
