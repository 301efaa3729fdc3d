// Steps under an accumulation plan that is given, on an architecture of which no plan is known: its product alone refuses.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/linear/grouped_linear.h"
#include "reference/types/error.h"

namespace assay {
namespace {

constexpr std::int64_t kSplits[] = {2, 0, 3};
constexpr std::int64_t kRows = 5, kN = 4, kK = 8, kGroups = 3;

std::vector<std::uint16_t> bf16(std::int64_t elements, int first) {
  std::vector<std::uint16_t> codes;
  for (std::int64_t i = 0; i < elements; ++i)
    codes.push_back(scalar::encode_bf16(static_cast<float>((first + 5 * i) % 17) - 8.0f));
  return codes;
}

struct Layer {
  LinearConfig config;
  LinearShape shape{kSplits, kRows, kN, kK};
  std::vector<std::uint16_t> x = bf16(kRows * kK, 1), dy = bf16(kRows * kN, 2), w = bf16(kGroups * kN * kK, 3);

  explicit Layer(std::string_view architecture) {
    config.recipe = LinearRecipe::none;
    config.type = Format::bf16;
    config.architecture = architecture;
  }
  // y, dx and dw one after another, by `multiply` or, where there is none, by the architecture's plan.
  std::vector<std::uint32_t> outputs(const Multiply& multiply) const {
    std::vector<std::uint16_t> y(kRows * kN, 7), dx(kRows * kK, 7);
    std::vector<std::uint32_t> all(kGroups * kN * kK, 7);
    LinearForward forward;
    forward.x = x.data(), forward.w = w.data();
    LinearDgrad dgrad;
    dgrad.dy = dy.data(), dgrad.w = w.data();
    LinearWgrad wgrad;
    wgrad.dy = dy.data(), wgrad.x = x.data(), wgrad.dw_type = Format::f32;
    if (multiply) {
      linear_forward_by(multiply, config, shape, forward, y.data());
      linear_dgrad_by(multiply, config, shape, dgrad, dx.data());
      linear_wgrad_by(multiply, config, shape, wgrad, all.data());
    } else {
      linear_forward(config, shape, forward, y.data());
      linear_dgrad(config, shape, dgrad, dx.data());
      linear_wgrad(config, shape, wgrad, all.data());
    }
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), dx.begin(), dx.end());
    return all;
  }
};

TEST(GivenPlan, ServesAnArchitectureWithoutOne) {
  const AccumulationPlan* const plan = find_accumulation_plan("cublaslt.sm90.bf16");
  ASSERT_NE(plan, nullptr);
  const Multiply under_plan = [&](const GroupedGemmProblem& problem, void* d) {
    GroupedGemmProblem planned = problem;
    planned.plan = plan;
    grouped_gemm(planned, d);
  };
  EXPECT_THROW(Layer("sm999").outputs({}), NotSupported);
  EXPECT_EQ(Layer("sm999").outputs(under_plan), Layer("sm90").outputs({}));
}

}  // namespace
}  // namespace assay
