// A backend must meet what it states about its numerics; where it states nothing, the weaker check applies.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ostream>

#include "conformance/tests/judge/rogue_backend.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

constexpr const char* kBf16 = "grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=288 data=clustered seed=38";
constexpr const char* kBlock = "grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45";
constexpr const char* kAsked =
    "grouped_gemm kind=fp8_block plan=unit=sm90.wgmma.fp8,promote=64,association=cols_first d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45";
constexpr const char* kExact = "grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=64 data=integers seed=54";
constexpr const char* kZeros = "quantize recipe=tensor_current R=33 K=64 data=specials seed=2";

void states(Rogue& rogue, const std::string& unit, const std::string& plan) {
  rogue.state = [=](assay_numerics& numerics) {
    std::snprintf(numerics.unit, sizeof numerics.unit, "%s", unit.c_str());
    std::snprintf(numerics.plan, sizeof numerics.plan, "%s", plan.c_str());
  };
}
// The plan as a line, and also by name if `name` is not empty.
void states_line(Rogue& rogue, const std::string& line, const std::string& name = "") {
  rogue.state = [=](assay_numerics& numerics) {
    numerics.unit[0] = '\0';
    std::snprintf(numerics.plan, sizeof numerics.plan, "%s", name.c_str());
    std::snprintf(numerics.plan_line, sizeof numerics.plan_line, "%s", line.c_str());
  };
}
void states_nothing(Rogue& rogue) { states(rogue, "", ""); }

float* floats(const assay_call& call, const char* name) { return static_cast<float*>(tensor(call, name).data); }

struct Statement {
  const char* name;
  const char* line;
  Verdict verdict;
  CheckBasis basis;
  std::vector<std::string> reported;
  void (*plant)(Rogue&);
};
void PrintTo(const Statement& statement, std::ostream* out) { *out << statement.name; }

class Stated : public testing::TestWithParam<Statement> {};

TEST_P(Stated, IsHeldToIt) {
  const Statement& statement = GetParam();
  Rogue rogue;
  statement.plant(rogue);
  const Judgement judgement = judge_text(rogue, statement.line);
  EXPECT_EQ(name_of(judgement.verdict), name_of(statement.verdict)) << judgement.text;
  EXPECT_EQ(name_of(judgement.basis), name_of(statement.basis));
  for (const std::string& part : statement.reported) EXPECT_TRUE(contains(judgement.text, part)) << part << "\nis not in\n" << judgement.text;
  EXPECT_EQ(judgement.text.empty(), statement.verdict == Verdict::passed) << judgement.text;
}

const Statement kStatements[] = {
    {"the_right_plan", kBf16, Verdict::passed, CheckBasis::bits, {}, [](Rogue&) {}},
    {"another_plan", kBf16, Verdict::failed, CheckBasis::bits, {"  output  d f32"}, [](Rogue& rogue) {
       states(rogue, "sm80.mma.f16", "sm80.bf16.chain");
     }},
    {"another_plan_for_blocks", kBlock, Verdict::failed, CheckBasis::bits, {"  output  d f32"}, [](Rogue& rogue) {
       states(rogue, "sm90.wgmma.fp8", "cublaslt.sm90.fp8_block.rows_first");
     }},
    {"a_line", kBlock, Verdict::passed, CheckBasis::bits, {}, [](Rogue& rogue) {
       states_line(rogue, "association=scales_first,promote=128,unit=sm90.wgmma.fp8");
     }},
    {"a_line_where_names_are", kBlock, Verdict::passed, CheckBasis::bits, {}, [](Rogue& rogue) {
       states(rogue, "", "unit=sm90.wgmma.fp8,promote=128,association=scales_first");
     }},
    {"a_line_and_its_name", kBlock, Verdict::passed, CheckBasis::bits, {}, [](Rogue& rogue) {
       states_line(rogue, "unit=sm90.wgmma.fp8,promote=128,association=scales_first", "cublaslt.sm90.fp8_block.scales_first");
     }},
    {"another_line", kBlock, Verdict::failed, CheckBasis::bits, {"  output  d f32"}, [](Rogue& rogue) {
       states_line(rogue, "unit=sm90.wgmma.fp8,promote=64,association=scales_first");
     }},
    {"a_line_of_another_kind", kBlock, Verdict::failed, CheckBasis::bits,
     {"  stated  the backend states the plan 'unit=sm90.wgmma.fp8' for this call: plan.association is none: expected scales_first"}, [](Rogue& rogue) {
       states_line(rogue, "unit=sm90.wgmma.fp8");
     }},
    {"a_line_and_another_name", kBlock, Verdict::failed, CheckBasis::bits,
     {"  stated  the backend states two plans, 'cublaslt.sm90.fp8_block.rows_first' and 'unit=sm90.wgmma.fp8,promote=128,association=scales_first'"},
     [](Rogue& rogue) {
       states_line(rogue, "unit=sm90.wgmma.fp8,promote=128,association=scales_first", "cublaslt.sm90.fp8_block.rows_first");
     }},
    {"no_line", kBlock, Verdict::failed, CheckBasis::bits,
     {"  stated  the backend states the plan 'unit=sm90.wgmma.fp8,promote=x': plan.promote is x: expected"}, [](Rogue& rogue) {
       states_line(rogue, "unit=sm90.wgmma.fp8,promote=x");
     }},
    {"a_line_without_end", kBlock, Verdict::failed, CheckBasis::bits, {"  stated  the backend's plan_line is text without an end: expected at most 511 bytes"},
     [](Rogue& rogue) { rogue.state = [](assay_numerics& numerics) { std::memset(numerics.plan_line, 'a', sizeof numerics.plan_line); }; }},

    // The case asks for a plan: the backend that makes the call follows it, also where it states nothing.
    {"the_plan_of_the_case", kAsked, Verdict::passed, CheckBasis::bits, {}, [](Rogue&) {}},
    {"the_plan_of_the_case_unstated", kAsked, Verdict::passed, CheckBasis::bits, {}, states_nothing},
    {"another_plan_than_the_case", kAsked, Verdict::failed, CheckBasis::bits,
     {"  stated  the case asks for the plan 'unit=sm90.wgmma.fp8,promote=64,association=cols_first', the backend states 'cublaslt.sm90.fp8_block.rows_first'"},
     [](Rogue& rogue) { states(rogue, "", "cublaslt.sm90.fp8_block.rows_first"); }},
    {"the_plan_of_the_case_not_followed", kAsked, Verdict::failed, CheckBasis::bits, {"  output  d f32"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         std::vector<assay_parameter> parameters;
         for (int i = 0; i < call.parameter_count; ++i) {
           if (std::string(call.parameters[i].name) != "plan") parameters.push_back(call.parameters[i]);
         }
         assay_call other = call;
         other.parameters = parameters.data();
         other.parameter_count = static_cast<std::int32_t>(parameters.size());
         return rogue.honest(other);
       };
     }},
    {"no_such_plan", kBf16, Verdict::failed, CheckBasis::bits,
     {"  stated  the backend states the plan 'sm90.bf16.best', which is not known (assay list --plans)"}, [](Rogue& rogue) {
       states(rogue, "", "sm90.bf16.best");
     }},
    {"no_such_unit", kBf16, Verdict::failed, CheckBasis::bits,
     {"  stated  the backend states the unit 'sm91.wgmma.f16', which is not a row of the tensor-core table (assay list --units)"}, [](Rogue& rogue) {
       states(rogue, "sm91.wgmma.f16", "cublaslt.sm90.bf16");
     }},
    {"no_such_unit_outside_products", "splits_to_offsets splits=1,2", Verdict::failed, CheckBasis::bits, {"  stated  the backend states the unit 'x'"}, [](Rogue& rogue) {
       states(rogue, "x", "");
     }},

    // Nothing stated, and data for which the order of summation matters: every element within its bound.
    {"no_plan", kBf16, Verdict::passed, CheckBasis::bound, {}, states_nothing},
    {"no_plan_for_blocks", kBlock, Verdict::passed, CheckBasis::bound, {}, states_nothing},
    {"no_plan_and_another_order", kBf16, Verdict::passed, CheckBasis::bound, {}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {  // the arithmetic of another architecture
         const assay_parameter plan{"plan", ASSAY_TEXT, 0, 0, "sm80.bf16.chain"};
         std::vector<assay_parameter> parameters;
         for (int i = 0; i < call.parameter_count; ++i) {
           if (std::string(call.parameters[i].name) != "plan") parameters.push_back(call.parameters[i]);
         }
         parameters.push_back(plan);
         assay_call other = call;
         other.parameters = parameters.data();
         other.parameter_count = static_cast<std::int32_t>(parameters.size());
         const Elsewhere usual(call);
         const assay_status status = rogue.honest(usual.call());
         rogue.honest(other);
         constexpr std::int64_t kWhole = 26 * 24 * 4;  // a group alone has fewer bytes
         if (tensor(call, "d").bytes == kWhole && std::memcmp(floats(call, "d"), floats(usual.call(), "d"), kWhole) == 0) {
           throw std::logic_error("the other order gives the same bits");
         }
         return status;
       };
     }},
    {"no_plan_and_a_wrong_scale", kBlock, Verdict::failed, CheckBasis::bound, {"outside their bound, 0 not written"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         for (int i = 0; i < 136; ++i) floats(call, "d")[i] *= 1.25f;
         return status;
       };
     }},
    {"no_plan_and_rows_swapped", kBf16, Verdict::failed, CheckBasis::bound, {"outside their bound, 0 not written, 0 written past the groups, of 624"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         float* d = floats(call, "d");
         std::swap_ranges(d, d + 24, d + 9 * 24);
         return status;
       };
     }},
    {"no_plan_and_nan", kBf16, Verdict::failed, CheckBasis::bound, {"1 outside their bound", "row 2, column 5: got 0x7FC00000 (NaN)"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         floats(call, "d")[2 * 24 + 5] = std::nanf("");
         return status;
       };
     }},
    {"no_plan_and_not_written", kBf16, Verdict::failed, CheckBasis::bound, {"0 outside their bound, 1 not written", "row 25, column 23"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         float before = 0;
         std::memcpy(&before, &floats(call, "d")[26 * 24 - 1], 4);
         const assay_status status = rogue.honest(call);
         std::memcpy(&floats(call, "d")[26 * 24 - 1], &before, 4);
         return status;
       };
     }},
    {"no_plan_and_nothing_written", kBf16, Verdict::failed, CheckBasis::bound, {"624 not written"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [](const assay_call&) { return ASSAY_OK; };
     }},
    {"no_plan_and_a_row_too_many", "grouped_gemm kind=bf16 d_type=f32 splits=9,0,17 N=24 K=72 extra_rows=3 seed=1", Verdict::failed, CheckBasis::bound,
     {"24 written past the groups", "row 28, column 0"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         std::memset(floats(call, "d") + 28 * 24, 0, 24 * 4);
         return status;
       };
     }},

    // Nothing stated, but data for which every order gives the same bits.
    {"order_free", kExact, Verdict::passed, CheckBasis::order_free_bits, {}, states_nothing},
    {"order_free_and_one_bit_off", kExact, Verdict::failed, CheckBasis::order_free_bits, {"1 of 624 differ", "row 1, column 3"}, [](Rogue& rogue) {
       states_nothing(rogue);
       rogue.execute = [&rogue](const assay_call& call) {
         const assay_status status = rogue.honest(call);
         float& d = floats(call, "d")[27];
         d = std::nextafter(d, 1e9f);
         return status;
       };
     }},
    {"order_free_with_a_plan", kExact, Verdict::passed, CheckBasis::bits, {}, [](Rogue&) {}},

    // The sign of an exact zero. The reference keeps it.
    {"keeps_zero_sign", kZeros, Verdict::passed, CheckBasis::bits, {}, [](Rogue& rogue) {
       rogue.state = [](assay_numerics& numerics) { numerics.keeps_zero_sign = 1; };
     }},
    {"keeps_it_but_states_not", kZeros, Verdict::failed, CheckBasis::bits, {"0x80 (-0), want 0x00 (0)", "only the sign of zero differs"}, [](Rogue& rogue) {
       rogue.state = [](assay_numerics& numerics) { numerics.keeps_zero_sign = 0; };
     }},
    {"either_zero_sign_and_kept", kZeros, Verdict::passed, CheckBasis::bits, {}, [](Rogue& rogue) {
       rogue.state = [](assay_numerics& numerics) { numerics.keeps_zero_sign = -1; };
     }},
};
INSTANTIATE_TEST_SUITE_P(Numerics, Stated, testing::ValuesIn(kStatements), [](const auto& each) { return each.param.name; });

// A backend that gives +0 for every x that is a zero: right when it states so, wrong when it states the contrary.
class ZeroSign : public testing::TestWithParam<int> {};

TEST_P(ZeroSign, OfABackendThatDropsIt) {
  const int stated = GetParam();
  Rogue rogue;
  rogue.state = [=](assay_numerics& numerics) { numerics.keeps_zero_sign = stated; };
  int dropped = 0;
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    const std::uint16_t* x = static_cast<const std::uint16_t*>(tensor(call, "x").data);
    for (int row = 0; row < 33; ++row) {
      for (int column = 0; column < 64; ++column) {
        if (x[row * 64 + column] != 0x8000) continue;
        bytes(call, "rowwise_data")[row * 64 + column] = 0;
        bytes(call, "columnwise_data")[column * 33 + row] = 0;
        ++dropped;
      }
    }
    return status;
  };
  const Judgement judgement = judge_text(rogue, kZeros);
  ASSERT_GT(dropped, 0);
  EXPECT_EQ(judgement.verdict, stated == 1 ? Verdict::failed : Verdict::passed) << judgement.text;
  EXPECT_EQ(contains(judgement.text, "0x00 (0), want 0x80 (-0)"), stated == 1) << judgement.text;
}
INSTANTIATE_TEST_SUITE_P(Stated, ZeroSign, testing::Values(-1, 0, 1), [](const auto& each) {
  return each.param == -1 ? "either" : each.param == 0 ? "dropped" : "kept";
});

// A backend that may drop the sign of zero may change no other sign: a nonzero value with the wrong sign fails.
TEST(ZeroSignFree, IsNoLeaveForOtherValues) {
  Rogue rogue;
  rogue.state = [](assay_numerics& numerics) { numerics.keeps_zero_sign = -1; };
  rogue.execute = [&](const assay_call& call) {
    const assay_status status = rogue.honest(call);
    std::uint8_t* codes = bytes(call, "rowwise_data");
    int at = 0;
    while ((codes[at] & 0x7f) == 0) ++at;
    codes[at] ^= 0x80;
    return status;
  };
  const Judgement judgement = judge_text(rogue, kZeros);
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_TRUE(contains(judgement.text, "rowwise_data e4m3 [33,64]: 1 of 2112 differ")) << judgement.text;
}

}  // namespace
}  // namespace assay::conformance
