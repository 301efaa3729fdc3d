// Hints as a user sees them: the output of `repro` for a backend with one fault.

#include <gtest/gtest.h>

#include "conformance/tests/program/run_program.h"

namespace assay::conformance {
namespace {

std::string failure(const std::string& line, const std::string& fault) {
  const Ran ran = assay({"repro", line, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", fault});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  std::string text = ran.out;
  for (std::size_t at = 0; (at = text.find("\n          ", at)) != std::string::npos;)
    text.replace(at, 11, " ");  // wrapped lines
  return text;
}

constexpr const char* kHintedLine = "quantize recipe=mxfp8 splits=64,0,32 K=128 seed=5";

TEST(HintText, OfAnOutputThatIsNotWritten) {
  EXPECT_TRUE(contains(failure(kHintedLine, "left=rowwise_data"),
                       "  hint    not written: all 12288 still hold what was there before the call"))
      << failure(kHintedLine, "left=rowwise_data");
}

TEST(HintText, OfRowsThatAreExchanged) {
  EXPECT_TRUE(contains(failure(kHintedLine, "turned=rowwise_data"),
                       "  hint    rows are exchanged: row i has the values of row i xor 1: all "))
      << failure(kHintedLine, "turned=rowwise_data");
}

TEST(HintText, OfDoubledScales) {
  const std::string text = failure(kHintedLine, "doubled=rowwise_scale_inv");
  EXPECT_TRUE(contains(text, "  hint    scales off by a factor of 2, always twice the expected one: all ")) << text;
  EXPECT_FALSE(contains(text, "a rounding")) << text;
}

}  // namespace
}  // namespace assay::conformance
