// Two causes at once, causes that give the same words, the limit of time, and the mutants of the library.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/diagnose/explain/explain.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

constexpr auto kPoison = std::byte{0xA5};

// The outputs of `given` where it carries out `asked` in its place.
KeptCall failed(const Case& asked, Case given) {
  Request request = Request::read_only(given);
  request.out.clear();
  given.out.clear();
  for (const OutputSpec& spec : outputs_of(request)) {
    Tensor& tensor = given.out[spec.name];
    tensor = {spec.type, spec.shape, {}};
    tensor.bytes.assign(static_cast<std::size_t>(bytes_of(spec.type, tensor.elements())), kPoison);
    request.out[spec.name] = {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
                              static_cast<std::int64_t>(tensor.bytes.size())};
  }
  answer(request, Layer::scalar);
  KeptCall kept;
  kept.call = asked;
  kept.call.out = given.out;
  kept.poison = static_cast<std::uint8_t>(kPoison);
  return kept;
}

Case call_of(const char* line) { return generate(parse_case_line(line)); }

bool names(const Cause& cause, const char* text) { return cause.text.find(text) != std::string::npos; }

TEST(TwoCauses, OfOptions) {
  const Case asked = call_of("quantize recipe=block_1x128 pow2=1 eps=8 splits=9,0,17 K=272 seed=3");
  Case given = asked;
  given.attributes["pow2"] = std::int64_t{0};
  given.attributes["eps"] = 0.0;
  const Explanation explanation = explain(failed(asked, given));
  ASSERT_FALSE(explanation.causes.empty());
  const Cause& first = explanation.causes[0];
  EXPECT_TRUE(first.full && first.two) << first.text;
  EXPECT_TRUE(names(first, "eps=0")) << first.text;
  EXPECT_TRUE(names(first, "pow2=0") || names(first, "not cut to powers of two")) << first.text;
}

TEST(TwoCauses, OfAProduct) {
  Case asked = call_of("grouped_gemm kind=bf16 bias=1 d_type=f32 splits=9,5,17 N=24 K=72 seed=4");
  asked.attributes["plan"] = numerics_of(Request::read_only(asked)).plan;
  Case given = asked;
  auto* const bias = given.in.at("bias").as<std::uint32_t>();
  for (int group = 1; group < 3; ++group) std::memcpy(bias + group * 24, bias, 24 * sizeof *bias);
  auto* const x = given.in.at("x").as<std::uint16_t>();  // the last 8 of K count as 0
  for (int row = 0; row < 31; ++row) std::fill_n(x + row * 72 + 64, 8, std::uint16_t{0});
  const Explanation explanation = explain(failed(asked, given));
  ASSERT_FALSE(explanation.causes.empty());
  const Cause& first = explanation.causes[0];
  EXPECT_TRUE(first.full && first.two) << first.text;
  EXPECT_TRUE(names(first, "bias of the first group for all") && names(first, "last 8")) << first.text;
}

// One cause in the codes, another in the scales.
TEST(TwoCauses, ApartInTheOutputs) {
  const Case asked = call_of("quantize recipe=block_1x128 R=40 K=272 seed=5");
  KeptCall kept = failed(asked, asked);
  for (std::byte& code : kept.call.out.at("rowwise_data").bytes) code ^= std::byte{0x80};
  for (std::byte& byte : kept.call.out.at("rowwise_scale_inv").bytes) byte = kPoison;
  kept.call.out.erase("columnwise_data");
  kept.call.out.erase("columnwise_scale_inv");
  const Explanation explanation = explain(kept);
  ASSERT_FALSE(explanation.causes.empty());
  const Cause& first = explanation.causes[0];
  EXPECT_TRUE(first.full && first.two) << first.text;
  EXPECT_TRUE(names(first, "rowwise_scale_inv not written")) << first.text;
  EXPECT_TRUE(names(first, "sign") || names(first, "negated")) << first.text;
}

TEST(TwoCauses, NoneWhereNoneIs) {
  const Case asked = call_of("quantize recipe=block_1x128 R=8 K=272 seed=6");
  KeptCall kept = failed(asked, asked);
  std::uint32_t state = 1;
  for (auto& [name, tensor] : kept.call.out)
    for (std::byte& byte : tensor.bytes) byte ^= std::byte((state = state * 1664525u + 1013904223u) >> 24);
  const Explanation explanation = explain(kept);
  EXPECT_EQ(explanation.alike(), 0u) << explanation.causes[0].text;
}

TEST(Explain, NamesAllThatGiveTheSameWords) {
  Case asked = call_of("grouped_gemm kind=bf16 alpha=0.5 beta=1 d_type=f32 splits=9,0,17 N=24 K=72 seed=7");
  asked.attributes["plan"] = numerics_of(Request::read_only(asked)).plan;
  Case given = asked;
  given.attributes["beta"] = 0.5;  // alpha multiplies beta * C too: the same, as 0.5 is exact
  const Explanation explanation = explain(failed(asked, given), {.most = 1});
  EXPECT_GE(explanation.alike(), 2u);
  EXPECT_TRUE(std::any_of(explanation.causes.begin(), explanation.causes.end(),
                          [](const Cause& cause) { return cause.full && names(cause, "alpha"); }));
  EXPECT_TRUE(std::any_of(explanation.causes.begin(), explanation.causes.end(),
                          [](const Cause& cause) { return cause.full && names(cause, "beta=0.5"); }));
}

TEST(Explain, EndsInTime) {
  const Case asked = call_of("quantize recipe=block_1x128 R=40 K=272 seed=8");
  Case given = asked;
  given.attributes["pow2"] = std::int64_t{1};
  const Explanation all = explain(failed(asked, given)), some = explain(failed(asked, given), {.seconds = 1e-9});
  EXPECT_TRUE(all.complete);
  EXPECT_FALSE(some.complete);
  EXPECT_LT(some.tried, all.tried);
}

#ifdef ASSAY_MUTANTS
// A sum where the reference has a product is no cause of the other families.
TEST(Explain, TriesTheMutants) {
  const Case asked = call_of("dequantize recipe=mxfp8 d_type=f32 R=9 K=96 seed=9");
  KeptCall kept = failed(asked, asked);
  const auto* const scales = asked.in.at("rowwise_scale_inv").as<std::uint8_t>();
  auto* const x = kept.call.out.at("x").as<float>();
  for (int row = 0; row < 9; ++row) {
    for (int column = 0; column < 96; ++column) {
      const float scale = std::ldexp(1.0f, scales[row * 4 + column / 32] - 127);
      float& value = x[row * 96 + column];
      value = value / scale + scale;  // code + scale
    }
  }
  const Explanation without = explain(kept);
  EXPECT_EQ(without.alike(), 0u) << without.causes[0].text;
  const Explanation with = explain(kept, {.mutants = ASSAY_MUTANTS});
  ASSERT_GE(with.alike(), 1u);
  EXPECT_TRUE(std::any_of(with.causes.begin(), with.causes.end(), [](const Cause& cause) {
    return cause.full && names(cause, "mxfp8_scalar.cc") && cause.text.ends_with(": +");
  })) << with.causes[0].text;
  EXPECT_THROW(explain(kept, {.mutants = "/no/such/library.so"}), std::exception);
}
#endif

}  // namespace
}  // namespace assay::conformance
