// Checks of what a backend states: the statement itself, and the reproducibility that it claims.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>

#include "conformance/catalogue/catalogue.h"
#include "conformance/tests/diagnose/product_models.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

constexpr const char* kProduct = "grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=288 data=clustered seed=38";
constexpr const char* kOffsets = "splits_to_offsets splits=1,2";

struct Statement {
  const char* name;
  const char* line;
  Verdict verdict;
  std::vector<std::string> reported;
  void (*plant)(Rogue&);
};
void PrintTo(const Statement& statement, std::ostream* out) { *out << statement.name; }

// States a value and no plan; the bits differ by a unit in the last place in some calls, which every bound allows.
void varies(Rogue& rogue, int deterministic, bool (*differs)(int calls, bool other_poison)) {
  rogue.state = [=](assay_numerics& numerics) {
    numerics.unit[0] = numerics.plan[0] = '\0';
    numerics.deterministic = deterministic;
  };
  rogue.execute = [&rogue, differs](const assay_call& call) {
    const bool other_poison = bytes(call, "d")[0] == 0xa5;
    const assay_status status = rogue.honest(call);
    auto* d = static_cast<float*>(tensor(call, "d").data);
    if (differs(rogue.calls, other_poison)) d[5] = std::nextafter(d[5], 1e9f);
    return status;
  };
}

class Reproducibility : public testing::TestWithParam<Statement> {};

TEST_P(Reproducibility, IsCheckedAsStated) {
  const Statement& statement = GetParam();
  Rogue rogue;
  statement.plant(rogue);
  const Judgement judgement = judge_text(rogue, statement.line);
  EXPECT_EQ(name_of(judgement.verdict), name_of(statement.verdict)) << judgement.text;
  for (const std::string& part : statement.reported) EXPECT_TRUE(contains(judgement.text, part)) << part << "\nis not in\n" << judgement.text;
}

const Statement kStatements[] = {
    {"zero_sign_out_of_range", kOffsets, Verdict::failed, {"  stated  the backend states keeps_zero_sign = 7: expected 1, 0 or -1"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { numerics.keeps_zero_sign = 7; }; }},
    {"deterministic_out_of_range", kOffsets, Verdict::failed, {"the backend states deterministic = -2"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { numerics.deterministic = -2; }; }},
    {"batch_invariant_out_of_range", kProduct, Verdict::failed, {"the backend states batch_invariant = 2147483647"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { numerics.batch_invariant = 0x7fffffff; }; }},
    {"plan_without_an_end", kProduct, Verdict::failed, {"the backend's plan is text without an end: expected at most 95 bytes and a 0"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { std::memset(numerics.plan, 'a', sizeof numerics.plan); }; }},
    {"unit_without_an_end", kOffsets, Verdict::failed, {"the backend's unit is text without an end: expected at most 63 bytes and a 0"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { std::memset(numerics.unit, 'a', sizeof numerics.unit); }; }},
    {"unit_of_another_plan", kProduct, Verdict::failed,
     {"the backend states the unit 'sm80.mma.f16' and the plan 'cublaslt.sm90.bf16', whose unit is 'sm90.wgmma.f16'"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { std::strcpy(numerics.unit, "sm80.mma.f16"); }; }},
    {"unit_of_other_types", kProduct, Verdict::failed, {"the backend states for this call: unit is sm90.wgmma.fp8: expected a row of the tensor-core table that multiplies bf16 by bf16"},
     [](Rogue& rogue) {
       rogue.state = [](assay_numerics& numerics) { std::strcpy(numerics.unit, "sm90.wgmma.fp8"), numerics.plan[0] = '\0'; };
     }},
    {"plan_of_another_kind", kProduct, Verdict::failed, {"the backend states the plan 'sm100.mxfp8.chain' for this call: "},
     [](Rogue& rogue) {
       rogue.state = [](assay_numerics& numerics) { std::strcpy(numerics.unit, ""), std::strcpy(numerics.plan, "sm100.mxfp8.chain"); };
     }},

    {"deterministic_and_is", kProduct, Verdict::passed, {}, [](Rogue& rogue) { varies(rogue, 1, [](int, bool) { return false; }); }},
    {"deterministic_and_is_not", kProduct, Verdict::failed, {"the same call for the 4th time; the backend states deterministic = 1"},
     [](Rogue& rogue) { varies(rogue, 1, [](int calls, bool) { return calls == 4; }); }},
    {"deterministic_but_for_what_memory_held", kProduct, Verdict::failed, {"over two poisons; the backend states deterministic = 1"},
     [](Rogue& rogue) { varies(rogue, 1, [](int, bool other_poison) { return other_poison; }); }},
    {"nothing_stated_and_varies", kProduct, Verdict::passed, {}, [](Rogue& rogue) { varies(rogue, -1, [](int calls, bool) { return calls % 2 == 0; }); }},
    {"nothing_stated_and_reads_memory", kProduct, Verdict::failed, {"the result depends on what memory held"},
     [](Rogue& rogue) { varies(rogue, -1, [](int, bool other_poison) { return other_poison; }); }},
    {"not_deterministic", kProduct, Verdict::passed, {}, [](Rogue& rogue) { varies(rogue, 0, [](int calls, bool) { return calls == 2; }); }},
};
INSTANTIATE_TEST_SUITE_P(statements, Reproducibility, testing::ValuesIn(kStatements), [](const auto& each) { return each.param.name; });

// One order for a group with neighbours and another for a group alone: both are right, and the bits differ.
class BatchInvariance : public testing::TestWithParam<int> {};

TEST_P(BatchInvariance, IsCheckedWithTheGroupAlone) {
  const int stated = GetParam();
  Rogue rogue;
  rogue.state = [=](assay_numerics& numerics) {
    numerics.unit[0] = numerics.plan[0] = '\0';
    numerics.batch_invariant = stated;
  };
  const std::vector<models::Model> right = models::right_models();
  rogue.execute = [&](const assay_call& call) {
    const Request request = Request::of(call);
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    const auto busy = std::count_if(parsed.splits.begin(), parsed.splits.end(), [](std::int64_t rows) { return rows > 0; });
    models::multiply(right[busy > 1 ? 0 : 1], parsed.problem, tensor(call, "d").data);
    return ASSAY_OK;
  };
  const Judgement judgement = judge_text(rogue, kProduct);
  EXPECT_EQ(judgement.verdict, stated == 1 ? Verdict::failed : Verdict::passed) << judgement.text;
  EXPECT_EQ(contains(judgement.text, "the group of 17 rows without the others; the backend states batch_invariant = 1"), stated == 1) << judgement.text;
}
INSTANTIATE_TEST_SUITE_P(stated, BatchInvariance, testing::Values(-1, 0, 1), [](const auto& each) {
  return each.param == -1 ? "nothing" : each.param == 0 ? "no" : "yes";
});

// The group alone is extracted from every storage and layout: a backend that is batch invariant passes.
TEST(BatchInvarianceOfTheReference, HoldsForEveryProduct) {
  int products = 0;
  for (const CaseLine& line : catalogue(Profile::smoke)) {
    if ((line.op != "grouped_gemm" && !line.op.starts_with("linear_")) || line.has("replay")) continue;
    Rogue rogue;
    rogue.state = [](assay_numerics& numerics) { numerics.unit[0] = numerics.plan[0] = '\0'; };
    const Judgement judgement = judge_text(rogue, to_text(line));
    EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
    products += rogue.calls > 6;  // two runs, four repeats, and the group alone
  }
  EXPECT_GT(products, 20);
}

}  // namespace
}  // namespace assay::conformance
