// Whole calls of quantize_by_rule(), thread by thread on the host, against the reference's scalar layer: every preset, and
// formulas that no preset has.

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "device/tests/by_rule/host_call.h"
#include "reference/tests/rules/rule_case.h"
#include "reference/types/error.h"

namespace assay::device::by_rule {
namespace {

using namespace rules_suite;

QuantizeByRuleCall call_of(const Case& c, const RuleProblem& problem) {
  QuantizeByRuleCall call;
  call.rule = c.rule;
  call.output = c.output;
  call.block = c.block;
  call.storage = c.storage;
  call.transposed = c.transposed;
  call.x_type = c.x_type;
  call.x = problem.x;
  call.rows.capacity = problem.rows;
  call.columns = c.columns;
  call.outer_amax = problem.outer_amax;
  if (c.grouped) {
    static const std::int64_t none = 0;
    call.rows.splits = c.splits.empty() ? &none : c.splits.data();
    call.rows.groups = static_cast<int>(c.splits.size());
  }
  return call;
}

struct Wanted {
  bool data = true, scale = true, outer = true, given = false;
};

struct Buffers {
  std::vector<std::uint8_t> data, scale;
  std::vector<float> outer;
};

void expect_equal(const Case& c, const Wanted& wanted) {
  SCOPED_TRACE(testing::PrintToString(c));
  RuleProblem problem = problem_of(c);
  const std::vector<std::uint8_t> x = make_x(c, problem.rows);
  problem.x = x.data();
  const RuleShapes shapes = rule_outputs(problem);
  std::vector<float> given(static_cast<std::size_t>(shapes.outer_amaxes));
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = i % 5 == 3 ? __builtin_nanf("") : 3.0f + static_cast<float>(i);
  if (wanted.given && !given.empty()) problem.outer_amax = given.data();
  Buffers want, got;
  const auto output = [&](Buffers& buffers) {
    buffers.data.assign(static_cast<std::size_t>(shapes.data_bytes) + 16, 0xA5);
    buffers.scale.assign(static_cast<std::size_t>(shapes.scale_bytes) + 16, 0xA5);
    buffers.outer.assign(static_cast<std::size_t>(shapes.outer_amaxes) + 4, -7.0f);
    return RuleOutput{wanted.data ? buffers.data.data() : nullptr, wanted.scale ? buffers.scale.data() : nullptr,
                      wanted.outer && shapes.outer_amaxes > 0 ? buffers.outer.data() : nullptr};
  };
  scalar::quantize_by_rule(problem, output(want));
  QuantizeByRuleCall call = call_of(c, problem);
  call.output_to = output(got);
  ASSERT_TRUE(run_on_host(call, 0x9C));
  EXPECT_EQ(got.data, want.data);
  EXPECT_EQ(got.scale, want.scale);
  const auto bits = [](const std::vector<float>& values) {
    std::vector<std::uint32_t> all;
    for (const float value : values) all.push_back(std::bit_cast<std::uint32_t>(value));
    return all;
  };
  EXPECT_EQ(bits(got.outer), bits(want.outer));
}

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : state_(seed) {}
  std::size_t operator()(std::size_t of) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) % of;
  }

 private:
  std::uint32_t state_;
};

const std::vector<std::int64_t> kSplits[] = {{4},     {32, 0, 68}, {4, 128, 12},      {}, {0, 0}, {520}, {200, 4, 4, 0, 4, 16, 4},
                                             {16, 8}, {0, 100, 0}, {4, 4, 4, 4, 4, 4}};
const std::vector<std::int64_t> kAnySplits[] = {{1}, {33, 0, 67}, {5, 129, 1}, {}, {0, 0}, {515}, {0, 31, 2, 0, 0, 300}};
constexpr std::int64_t kColumns[] = {4, 36, 272, 516, 0, 132}, kAnyColumns[] = {1, 37, 130, 271, 0, 5};

// A call with everything drawn but rule, block and output.
void expect_drawn(const ScaleRule& rule, const BlockShape& block, Format output, Draw& pick) {
  Case c;
  c.rule = &rule, c.output = output, c.block = block;
  c.seed = static_cast<std::uint32_t>(pick(1u << 24));
  c.data = std::array{Data::spread, Data::specials, Data::tiny, Data::zeros, Data::bits}[pick(5)];
  const bool any = bits_of(output) == 8 && pick(2) == 1;
  c.splits = any ? kAnySplits[pick(std::size(kAnySplits))] : kSplits[pick(std::size(kSplits))];
  c.columns = any ? kAnyColumns[pick(std::size(kAnyColumns))] : kColumns[pick(std::size(kColumns))];
  c.x_type = std::array{Format::bf16, Format::f16, Format::f32}[pick(3)];
  c.transposed = pick(2) == 1;
  c.grouped = c.splits.size() != 1 || pick(2) == 1;
  c.rows_beyond = c.grouped ? static_cast<std::int64_t>(pick(3)) : 0;
  const std::vector<std::string> storages = scale_storage_names();
  c.storage = parse_scale_storage("storage", storages[pick(storages.size())]);
  try {
    rule_outputs(problem_of(c));
  } catch (const assay::InvalidArgument&) {
    c.storage = {};  // of another type of scales
  }
  const std::size_t outputs = pick(6);
  expect_equal(c, {outputs != 1 && outputs != 2, outputs != 2 && outputs != 3, outputs != 3 && outputs != 4, pick(3) == 0});
}

class EveryPreset : public testing::TestWithParam<std::string> {};

TEST_P(EveryPreset, HasTheReferencesBits) {
  const ScaleRule& rule = *find_scale_rule(GetParam());
  Draw pick(7);
  for (const BlockShape& block : rule.blocks) {
    for (const Format output : rule.outputs) {
      for (int repeat = 0; repeat < 12 && !HasFailure(); ++repeat) expect_drawn(rule, block, output, pick);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const ScaleRule& each : scale_rules()) all.push_back(each.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Presets, EveryPreset, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// A rule whose text is `formula`, in blocks that may be joined.
ScaleRule joining_rule(const std::string& formula, const std::string& fields) {
  return parse_scale_rules("name=joins blocks=1x16 " + fields + " rule=\"" + formula + "\" source=none", "own").front();
}

// Sums whose order shows in nearly every block, joined values of joined values, and the largest of values with NaN.
TEST(RulesThatJoinElementsOfABlock, HaveTheReferencesBits) {
  const std::string formulas[] = {
      "e = block_sum(x); scale = e; code = x / e",
      "e = block_squares(x); scale = e; code = x * amax / e",
      "e = block_max(x); scale = e; code = x - e",
      "e = block_max(-x * amax); f = block_sum(x - e); g = block_squares(f * x + outer_amax); scale = g; code = x > f ? e : x / "
      "g",
      "s = amax / output_max; t = s * 2; e = block_squares(e4m3(x / s) * s - x); f = block_squares(e4m3(x / t) * t - x); "
      "scale = f < e ? t : s; code = x / (f < e ? t : s)",
      "scale = block_sum(1); code = x * scale",
      "e = block_sum(fma(x, 3, amax < 1 ? x : -x)); scale = pow2_ceil(e); code = x * (1 / scale) * rcp_approx(e)",
  };
  Draw pick(5);
  for (const std::string& formula : formulas) {
    for (const char* fields :
         {"outer=tensor amax_nan=propagated", "outer=row scale_type=e4m3", "outer=tensor scale_type=e8m0 round=down"}) {
      const ScaleRule rule = joining_rule(formula, fields);
      SCOPED_TRACE(formula);
      for (int repeat = 0; repeat < 12; ++repeat) {
        constexpr std::array kOutputs = {Format::e4m3, Format::e5m2, Format::e3m2, Format::e2m3, Format::e2m1};
        expect_drawn(rule, kReducedBlock, kOutputs[pick(kOutputs.size())], pick);
        if (HasFailure()) return;
      }
    }
  }
}

// The values of x come from an activation.
TEST(RulesThatJoinElementsOfABlock, JoinWhatAnActivationGives) {
  const ScaleRule rule =
      joining_rule("e = block_sum(x); scale = e; code = x / e", "activation=\"h = gate / (1 + abs(gate)); x = bf16(h * up)\"");
  Draw pick(6);
  for (int repeat = 0; repeat < 20; ++repeat) expect_drawn(rule, kReducedBlock, Format::e4m3, pick);
}

// Worked out by hand: 2^24 + 1 is rounded to 2^24, so that what is lost shows which values are added first.
TEST(Join, AddsColumnsEightApartFirstAndThenFromTheLeft) {
  float part[kJoinedColumns] = {0x1p24f, 1};
  part[8] = part[9] = 1;
  EXPECT_EQ(join(FormulaReduction::sum, part), 0x1p24f + 2);
  part[9] = 0;
  EXPECT_EQ(join(FormulaReduction::sum, part), 0x1p24f);
  float first_last[kJoinedColumns] = {};
  first_last[6] = first_last[7] = 1;  // each added to 2^24 by itself
  first_last[0] = 0x1p24f;
  EXPECT_EQ(join(FormulaReduction::sum, first_last), 0x1p24f);
  float squares[kJoinedColumns] = {0x1p12f, 1};
  squares[9] = 1;
  EXPECT_EQ(join(FormulaReduction::squares, squares), 0x1p24f + 2);
  const float negative[kJoinedColumns] = {-1, -0.0f, -3};
  EXPECT_EQ(std::bit_cast<std::uint32_t>(join(FormulaReduction::maximum, negative)), 0u);
}

// Operators, functions and uses of names that no preset has.
TEST(OwnRules, HaveTheReferencesBits) {
  std::string many = "s0 = amax";  // more instructions than one launch carries
  for (int i = 1; i < 50; ++i) many += "; s" + std::to_string(i) + " = s" + std::to_string(i - 1) + " * 1.0625 + 1 - 1 + 0 * 2";
  const std::string rules[] = {
      "scale = amax; code = x / amax",
      "scale = outer_amax; code = x * outer_amax + amax - -x * x_max / output_max",
      "scale = rcp_approx_ftz(amax); code = ftz(x) * ex2_approx(outer_amax) / (amax > 2 ? rsqrt_approx(amax) : "
      "tanh_approx(amax))",
      "scale = div_full(amax, 3); code = tanh_approx(x) * div_approx_ftz(x, amax) + div_full(x, scale)",
      "scale = fma(amax, 0.5, output_pow2); code = fma(x, amax, -outer_amax) - (x >= amax) + (x == 0) + (x != amax) + (x <= -1)",
      "a = min_nan(amax, 100); scale = a < 4 ? a : a > 50 ? -a : nan; code = max_nan(min(x, a * 2), -a) * bf16(x) / f16(a)",
      "scale = round_mantissa(amax, output_mantissa_bits); code = round_mantissa(x, 2) * abs(x) / e4m3(amax) + e5m2(x)",
      "scale = pow2_ceil_log2(amax); code = x * pow2_floor_log2(abs(x)) * pow2_ceil(x) / pow2_floor(x)",
      "scale = 2; code = (1 + (2 + (3 + (4 + (5 + (6 + (7 + (8 + (9 + (10 + x * (amax * (amax * (amax + 1))))))))))))) / 32",
      many + "; scale = s49; code = x / s49 + s3 * 0",
  };
  Draw pick(11);
  int row = 0;
  for (const std::string& text : rules) {
    for (const char* fields : {"amax_nan=propagated scale_type=e8m0 outer=tensor round=down overflow=special negative_zero=never",
                               "scale_type=e4m3 outer=tensor round=away nan=zero negative_zero=underflow overflow=special",
                               "outer=row round=truncate nan=zero", "outer=row amax_nan=propagated overflow=special"}) {
      const std::string line = "name=own" + std::to_string(row++) + " blocks=1x1,1x3,1x7,1x128,1x130,1xall " + fields +
                               " rule=\"" + text + "\" source=none";
      const ScaleRule rule = parse_scale_rules(line, "own").front();
      SCOPED_TRACE(line);
      std::vector<BlockShape> shapes = rule.blocks;
      if (rule.outer == OuterAmax::tensor) shapes.insert(shapes.end(), {{3, 5}, {0, 1}, {0, 0}, {100, 4}, {128, 128}, {0, 36}});
      for (const BlockShape& block : shapes) {
        constexpr std::array kOutputs = {Format::e4m3, Format::e5m2, Format::e3m2, Format::e2m3, Format::e2m1};
        for (int repeat = 0; repeat < 2; ++repeat) expect_drawn(rule, block, kOutputs[pick(kOutputs.size())], pick);
        if (HasFailure()) return;
      }
    }
  }
}

// ---- What a call refuses --------------------------------------------------------------------------------------------

QuantizeByRuleCall plain_call() {
  QuantizeByRuleCall call;
  call.rule = find_scale_rule("deepgemm");
  call.block = {1, 128};
  call.rows.capacity = 16;
  call.columns = 256;
  return call;
}

TEST(Plan, NamesWhatMakesNoSense) {
  const struct {
    const char* reported;
    void (*change)(QuantizeByRuleCall&);
  } rows[] = {
      {"rule is null", [](QuantizeByRuleCall& call) { call.rule = nullptr; }},
      {"x_type", [](QuantizeByRuleCall& call) { call.x_type = Format::e4m3; }},
      {"output is", [](QuantizeByRuleCall& call) { call.output = Format::e8m0; }},
      {"block is 2048x1",
       [](QuantizeByRuleCall& call) {
         call.block = {2048, 1};
       }},
      {"block is 2x16",
       [](QuantizeByRuleCall& call) {
         call.rule = find_scale_rule("nvfp4.te_row_scaled"), call.block = {2, 16};
       }},
      {"block is 1x128: expected 1x16", [](QuantizeByRuleCall& call) { call.rule = find_scale_rule("fouroversix.mse"); }},
      {"program is of rule deepgemm, output e5m2, x_type bf16",
       [](QuantizeByRuleCall& call) {
         static const RuleProgram program = rule_program(*call.rule, Format::e5m2, Format::bf16);
         call.program = &program;
       }},
      {"storage is packed", [](QuantizeByRuleCall& call) { call.storage.order = ScaleStorage::Order::packed; }},
      {"storage is swizzled_8x4", [](QuantizeByRuleCall& call) { call.storage.order = ScaleStorage::Order::swizzled_8x4; }},
      {"columns is -1", [](QuantizeByRuleCall& call) { call.columns = -1; }},
      {"columns is 255", [](QuantizeByRuleCall& call) { call.columns = 255, call.output = Format::e2m1; }},
      {"columns is 254", [](QuantizeByRuleCall& call) { call.columns = 254, call.output = Format::e2m3; }},
      {"rows.capacity is 15",
       [](QuantizeByRuleCall& call) { call.rows.capacity = 15, call.transposed = true, call.output = Format::e2m1; }},
      {"rows.capacity is -1", [](QuantizeByRuleCall& call) { call.rows.capacity = -1; }},
  };
  EXPECT_GT(rule_plan(plain_call()).workspace_bytes, 0);
  for (const auto& row : rows) {
    QuantizeByRuleCall call = plain_call();
    row.change(call);
    try {
      rule_plan(call);
      FAIL() << row.reported << " was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << error.what();
    }
  }
}

// Groups whose transposed codes would share a byte are only known on the device.
TEST(MeasureGroups, RefusesGroupsThatSplitBytes) {
  const std::int64_t splits[] = {4, 6, 2};
  QuantizeByRuleCall call = plain_call();
  call.rows.splits = splits;
  call.rows.groups = 3;
  call.transposed = true;
  call.rows.capacity = 12;
  const std::vector<std::uint16_t> x(12 * 256);
  call.x = x.data();
  for (const auto& [output, taken] : {std::pair{Format::e4m3, true}, {Format::e2m1, true}, {Format::e2m3, false}}) {
    call.output = output;
    EXPECT_EQ(run_on_host(call, 0), taken) << name_of(output);
  }
}

// A program that is made once has room and result of one that each call makes.
TEST(Plan, TakesAProgramThatIsMade) {
  QuantizeByRuleCall call = plain_call();
  const RuleProgram program = rule_program(*call.rule, call.output, call.x_type);
  const RulePlan own = rule_plan(call);
  call.program = &program;
  const RulePlan given = rule_plan(call);
  EXPECT_EQ(given.workspace_bytes, own.workspace_bytes);
  EXPECT_EQ(given.arguments.of_block, own.arguments.of_block);
  EXPECT_EQ(given.program.instructions.size(), own.program.instructions.size());
}

TEST(Program, TellsApproximateInstructions) {
  const auto approximate = [](const std::string& code) {
    const std::string line = "name=a blocks=1x128 rule=\"scale = amax; code = " + code + "\" source=none";
    return rule_program(parse_scale_rules(line, "own").front(), Format::e4m3, Format::bf16).approximate;
  };
  EXPECT_FALSE(approximate("x / amax"));
  EXPECT_FALSE(approximate("ftz(x)"));
  EXPECT_FALSE(approximate("e5m2(x)"));
  for (const char* name :
       {"rcp_approx_ftz", "rcp_approx", "ex2_approx_ftz", "ex2_approx", "rsqrt_approx_ftz", "rsqrt_approx", "tanh_approx"}) {
    EXPECT_TRUE(approximate(std::string(name) + "(x)")) << name;
  }
  EXPECT_TRUE(approximate("x * rcp_approx(amax)"));
  EXPECT_TRUE(approximate("div_full(x, amax)"));
  EXPECT_TRUE(approximate("div_approx_ftz(x, amax)"));
}

TEST(Program, RefusesMoreValuesThanItHasRoomFor) {
  std::string code = "x";
  for (int i = 0; i < 130; ++i) code += " + x * (amax + " + std::to_string(i) + ")";
  const std::string line = "name=a blocks=1x128 rule=\"scale = amax; code = " + code + "\" source=none";
  EXPECT_THROW(parse_scale_rules(line, "own"), assay::InvalidArgument);
}

}  // namespace
}  // namespace assay::device::by_rule
