// Where scales and codes are both wrong, scales are reported first, and the report on codes refers to them.

#include <gtest/gtest.h>

#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/expectation.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

constexpr const char* kScalesAreWrong = "their scales are wrong too: look at them first";

class ScalesFirst : public testing::Test {
 protected:
  explicit ScalesFirst(const char* line = "quantize recipe=mxfp8 splits=64,32 K=128 seed=5")
      : problem_(generate(parse_case_line(line))) {
    Request request = Request::of(problem_);
    specs_ = outputs_of(request);
    assay_numerics stated{};
    stated.keeps_zero_sign = 1;
    expectation_ = std::make_unique<Expectation>(problem_, nullptr, specs_, stated, JudgeOptions{});
    request.out.clear();
    for (const OutputSpec& spec : specs_) {
      OutputView view{spec.type, spec.shape, nullptr, 0};
      view.bytes = spec.type == Format::e2m1 ? view.elements() : bytes_of(spec.type, view.elements());
      std::vector<std::byte>& bytes = outputs_[spec.name];
      bytes.resize(static_cast<std::size_t>(view.bytes), std::byte{0xA5});
      view.data = bytes.data();
      request.out[spec.name] = view;
    }
    answer(request, Layer::fast);
  }
  // Adds 1 to the first `count` bytes: the next code, or twice the scale in E8M0.
  void step(const std::string& name, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::byte& each = outputs_.at(name)[i];
      each = static_cast<std::byte>(static_cast<int>(each) + ((static_cast<int>(each) & 0x7F) < 0x70 ? 1 : -1));
    }
  }
  std::vector<Finding> findings() const {
    std::vector<Finding> found;
    text_ = expectation_->differences(outputs_, 0xA5, nullptr, &found);
    return found;
  }

  Case problem_;
  std::vector<OutputSpec> specs_;
  std::unique_ptr<Expectation> expectation_;
  Outputs outputs_;
  mutable std::string text_;
};

TEST_F(ScalesFirst, AndTheirCodesAreNoRounding) {
  ASSERT_EQ(findings().size(), 0u) << text_;
  step("rowwise_data", 256);
  step("rowwise_scale_inv", 4);
  const std::vector<Finding> found = findings();
  ASSERT_EQ(found.size(), 2u) << text_;
  EXPECT_TRUE(found[0].output.starts_with("rowwise_scale_inv ")) << text_;
  EXPECT_LT(text_.find("rowwise_scale_inv"), text_.find("rowwise_data"));
  ASSERT_FALSE(found[1].hints.empty());
  EXPECT_NE(std::find(found[1].hints.begin(), found[1].hints.end(), kScalesAreWrong), found[1].hints.end()) << text_;
  EXPECT_EQ(text_.find("a rounding"), std::string::npos) << text_;
}

TEST_F(ScalesFirst, OfTheOtherDirectionSayNothing) {
  step("rowwise_data", 256);
  step("columnwise_scale_inv", 8);
  EXPECT_EQ(findings().size(), 2u) << text_;
  EXPECT_EQ(text_.find(kScalesAreWrong), std::string::npos) << text_;
  EXPECT_NE(text_.find("a rounding"), std::string::npos) << text_;
}

}  // namespace
}  // namespace assay::conformance
