// A product without a stated plan: no wrong width, tail or scale passes, and no right order fails.

#include <gtest/gtest.h>

#include <ostream>

#include "conformance/catalogue/catalogue.h"
#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/judge/expectation.h"
#include "conformance/tests/diagnose/product_models.h"

namespace assay::conformance {

// The printed parameter is the case.
void PrintTo(const CaseLine& line, std::ostream* out) { *out << to_text(line); }

namespace {

// The models below have one scale per group. A case that names a plan is judged by that plan.
bool has_own_terms(const CaseLine& line) { return line.has("plan") || line.text("scaling") != "per_group"; }

bool has_fp22(const CaseLine& line) {
  const std::string kind = line.text("kind"), arch = line.text("arch");
  return (kind == "fp8_per_tensor" || kind == "fp8_block") && (arch == "sm89" || arch == "sm90");
}

Judgement judged(const models::Model& model, const CaseLine& line) {
  Rogue rogue;
  models::plant(rogue, model);
  return judge_text(rogue, to_text(line));
}

// A case line, what a backend that states nothing must give for it, and the products.
struct Unplanned {
  explicit Unplanned(const CaseLine& line) : problem(generate(line)), request(Request::of(problem)) {
    parse_grouped_gemm(request, parsed);
    assay_numerics nothing{};
    nothing.keeps_zero_sign = nothing.deterministic = nothing.batch_invariant = -1;
    JudgeOptions options;
    options.order_free = check_kind(line) == CheckKind::order_free;
    expectation = std::make_unique<Expectation>(problem, nullptr, outputs_of(request), nothing, options);
    d.resize(static_cast<std::size_t>(bytes_of(parsed.problem.d_type, elements())));
    view = view_of(parsed.problem, d.data());
    products = models::products_of(view, 0);
    neighbours = models::products_of(view, 1);
  }
  std::int64_t elements() const {
    const MatrixShape shape = grouped_gemm_shape(parsed.problem);
    return shape.rows * shape.columns;
  }
  // The failure of the model's D; empty if it passes.
  std::string differences(const models::Model& model) {
    std::fill(d.begin(), d.end(), std::byte{0xff});
    models::multiply(model, view, model.neighbour == 0 ? products : neighbours, d.data());
    return expectation->differences({{"d", d}}, 0xff);
  }

  Case problem;
  Request request;
  ParsedGroupedGemm parsed;
  std::unique_ptr<Expectation> expectation;
  std::vector<std::byte> d;
  GroupedGemmView view;
  std::vector<models::Products> products, neighbours;
};

class OrderFree : public testing::TestWithParam<CaseLine> {};

TEST_P(OrderFree, tells_every_wrong_model_and_passes_every_right_one) {
  const CaseLine& line = GetParam();
  const std::string kind = line.text("kind");
  Unplanned product(line);
  for (const models::Model& model : models::right_models()) {
    if (model.only_fp22 && !has_fp22(line)) continue;
    EXPECT_EQ(product.differences(model), "") << model.name;
  }
  for (const models::Model& model : models::wrong_models()) {
    if (model.neighbour != 0 && (kind == "bf16" || kind == "f16")) continue;  // no scales
    EXPECT_NE(product.differences(model), "") << model.name;
  }
}

std::string label(const testing::TestParamInfo<CaseLine>& info) { return "line" + std::to_string(info.index); }
INSTANTIATE_TEST_SUITE_P(lines, OrderFree, testing::ValuesIn(order_free_lines()), label);

// The claim of data=wide_sums: only the value of exact sums lies within the bounds. Where the factor of D is no power of two
// (nvfp4), an f32 D may be a few units off, and a 16-bit D may lie beside a tie.
TEST(wide_sums, leave_one_value) {
  for (const CaseLine& line : order_free_lines()) {
    Judgement counts;
    const CaseLine bounded = parse_case_line(to_text(line) + " check=bound");
    Unplanned by_bounds(bounded);
    by_bounds.expectation->count_elements(counts);
    EXPECT_EQ(by_bounds.differences({"double sums"}), "") << to_text(line);
    EXPECT_EQ(counts.elements_unbounded, 0) << to_text(line);
    const bool four_bits = line.text("kind") == "nvfp4";
    if (!four_bits) {
      EXPECT_EQ(counts.elements_bounded, 0) << to_text(line);
    } else if (line.text("d_type") != "f32") {
      EXPECT_LT(counts.elements_bounded, counts.elements_exact / 10) << to_text(line);
    }
  }
}

// Ordinary data: a right order must stay within the bounds.
TEST(bounded_products, hold_every_right_model) {
  for (const CaseLine& line : catalogue(Profile::smoke)) {
    if (line.op != "grouped_gemm" || line.has("replay") || has_own_terms(line)) continue;
    for (const models::Model& model : models::right_models()) {
      if (model.only_fp22 && !has_fp22(line)) continue;
      const Judgement judgement = judged(model, line);
      EXPECT_EQ(judgement.verdict, Verdict::passed) << model.name << "\n" << judgement.text;
    }
  }
}

// A NaN from an addend may have every bit set, like the first poison. An element that is not written is still found.
TEST(bounded_products, take_a_nan_of_every_bit_and_miss_one_that_is_not_written) {
  const std::string line =
      "grouped_gemm kind=bf16 beta=1 bias=1 splits=9,0,20 N=24 K=40 data=subnormals addends=every_special seed=426";
  for (const bool writes : {true, false}) {
    Rogue rogue;
    int nans = 0;
    rogue.state = [](assay_numerics& stated) { stated.unit[0] = stated.plan[0] = '\0'; };
    rogue.execute = [&](const assay_call& call) {
      const assay_tensor& d = call.outputs[0];
      auto* words = static_cast<std::uint16_t*>(d.data);
      const std::vector<std::uint16_t> before(words, words + d.bytes / 2);
      const assay_status status = rogue.honest(call);
      for (std::size_t i = 0; i < before.size(); ++i) {
        if ((words[i] & 0x7fff) <= 0x7f80 || words[i] == before[i]) continue;
        ++nans;
        words[i] = writes ? 0xffff : before[i];
      }
      return status;
    };
    const Judgement judgement = judge_text(rogue, line);
    EXPECT_GT(nans, 0);
    EXPECT_EQ(judgement.verdict, writes ? Verdict::passed : Verdict::failed) << judgement.text;
  }
}

// Whether two orders of summation can give NaN and infinity, or infinities of both signs, for the numbers of the line.
bool has_specials(const CaseLine& line) {
  const std::string text = to_text(line);
  for (const char* word : {"specials", "nan", "inf", "cancelling", "overflow"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// No product of the standard profile needs a stated plan to be right: the reference's result under the table's plan lies within
// the bounds, and for numbers that are not finite so does the result of every right model.
TEST(bounded_products, of_standard_hold_what_is_right) {
  int lines = 0, special = 0;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "grouped_gemm" || line.has("replay") || line.integer("contract") != 0 ||
        check_kind(line) == CheckKind::order_free || has_own_terms(line))
      continue;
    Unplanned product(line);
    if (product.elements() > 100'000) continue;
    ++lines;
    std::fill(product.d.begin(), product.d.end(), std::byte{0xff});
    grouped_gemm(product.parsed.problem, product.d.data());
    EXPECT_EQ(product.expectation->differences({{"d", product.d}}, 0xff), "") << to_text(line);
    if (!has_specials(line)) continue;
    ++special;
    for (const models::Model& model : models::right_models()) {
      if (model.only_fp22 && !has_fp22(line)) continue;
      EXPECT_EQ(product.differences(model), "") << model.name << "\n" << to_text(line);
    }
  }
  EXPECT_GT(lines, 500);
  EXPECT_GT(special, 50);
}

}  // namespace
}  // namespace assay::conformance
