// data=unit_probes distinguishes all units, and a failure names the unit that a backend behaves like if it states another.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/diagnose/unit_behaviour.h"
#include "conformance/generate/unit_probes.h"
#include "conformance/tests/diagnose/product_models.h"
#include "reference/gemm/any_order.h"

namespace assay::conformance {
namespace {

struct Probed {
  explicit Probed(const std::string& line) : problem(generate(parse_case_line(line))), request(Request::of(problem)) {
    parse_grouped_gemm(request, parsed);
    view = view_of(parsed.problem, problem.name.data());  // only read
  }
  Case problem;
  Request request;
  ParsedGroupedGemm parsed;
  GroupedGemmView view;
};

std::vector<const TensorCoreUnit*> units_for(const GroupedGemmView& view) {
  std::vector<const TensorCoreUnit*> units;
  for (const TensorCoreUnit& each : tensor_core_units()) {
    if (each.sum == StepSum::fused && takes(each, view.kind, view.groups[0].rows.type, view.groups[0].columns.type))
      units.push_back(&each);
  }
  return units;
}

// Every operand type.
constexpr const char* kKinds[] = {"kind=bf16", "kind=f16", "kind=fp8_per_tensor", "kind=fp8_per_tensor layout=NN dy_type=e5m2",
                                  "kind=mxfp8"};

std::string line_of(const std::string& kind) {
  return "grouped_gemm data=unit_probes d_type=f32 " + kind +
         (kind.find("NN") == std::string::npos ? " splits=80,64 N=4 K=64" : " splits=80,64 N=64 K=4");
}

TEST(UnitProbes, TellEveryUnitFromEveryOther) {
  std::set<std::string_view> met;
  for (const char* kind : kKinds) {
    const Probed probed(line_of(kind));
    const std::vector<const TensorCoreUnit*> units = units_for(probed.view);
    std::vector<std::vector<std::uint32_t>> words;
    for (const TensorCoreUnit* each : units) words.push_back(chain_of(probed.view, *each));
    for (std::size_t one = 0; one < units.size(); ++one) {
      met.insert(units[one]->name);
      for (std::size_t other = 0; other < one; ++other) {
        EXPECT_EQ(words[one] == words[other], same_arithmetic(*units[one], *units[other]))
            << kind << ": " << units[one]->name << ", " << units[other]->name;
      }
    }
  }
  for (const TensorCoreUnit& each : tensor_core_units()) {
    const bool served = std::find(each.operands.begin(), each.operands.end(), Format::f32) == each.operands.end() &&
                        each.sum == StepSum::fused && each.group == 1;
    EXPECT_EQ(met.count(each.name) == 1, served) << each.name;
  }
}

// Units beside the published ones: each number changed by itself.
TEST(UnitProbes, ShowEveryNumberOfAUnit) {
  for (const char* kind : kKinds) {
    const Probed probed(line_of(kind));
    for (const TensorCoreUnit* unit : units_for(probed.view)) {
      if (unit->execution == Execution::emulated_fp8) continue;  // its steps are f16 ones, whose cut products of FP8 do not reach
      const std::vector<std::uint32_t> right = chain_of(probed.view, *unit);
      std::vector<std::pair<std::string, TensorCoreUnit>> others;
      const auto add = [&](const std::string& what, auto change) {
        others.emplace_back(what, *unit);
        change(others.back().second);
      };
      for (const int by : {-2, -1, 1, 2})
        add("F by " + std::to_string(by), [=](TensorCoreUnit& each) { each.fraction_bits += by; });
      for (const int step : {4, 8, 16, 32, 64}) {
        if (step != unit->products_per_step && (step < 64 || unit->scaling == StepScaling::none))
          add(std::to_string(step) + " products", [=](TensorCoreUnit& each) { each.products_per_step = step; });
      }
      for (const Accumulator sum : {Accumulator::f32_truncated, Accumulator::e8m13_truncated, Accumulator::f16_nearest}) {
        if (sum != unit->accumulator) add("another accumulator", [=](TensorCoreUnit& each) { each.accumulator = sum; });
      }
      for (const auto& [what, other] : others)
        EXPECT_FALSE(chain_of(probed.view, other) == right) << kind << ", " << unit->name << ": " << what;
    }
  }
}

// The sums as the header describes them, without the reference's arithmetic: products are doubles.
TEST(UnitProbes, AreTheSumsThatTheirNamesSay) {
  const Probed probed(line_of("kind=bf16"));
  const std::vector<models::Products> products = models::products_of(probed.view, 0);
  const auto sum_of = [&](std::size_t probe) { return products.at(probe * 4).value; };  // column 0: times 1
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < unit_probes().size(); ++i) {
    const std::vector<double> terms = sum_of(i);
    double sum = 0;
    int count = 0;
    for (const double each : terms) {
      sum += each;
      count += each != 0;
    }
    EXPECT_EQ(count, unit_probes()[i].count) << unit_probes()[i].name;
    int below = 0;
    if (std::sscanf(unit_probes()[i].name.c_str(), "B, 2^-%d B, -B", &below) == 1) {
      EXPECT_EQ(sum, std::ldexp(1.0, 16 - below)) << unit_probes()[i].name;
      ++looked_at;
    }
  }
  EXPECT_EQ(looked_at, 25u);
}

// A backend with other arithmetic than it states: `step`, `fraction` and `kept` bits of models::fused().
void behave(Rogue& rogue, const std::string& unit, const std::string& plan, std::size_t step, int fraction, int kept) {
  models::plant(rogue, {"fused", [=](const double* p, std::size_t n) { return models::fused(p, n, step, fraction, kept); }});
  rogue.state = [=](assay_numerics& numerics) {
    std::snprintf(numerics.unit, sizeof numerics.unit, "%s", unit.c_str());
    std::snprintf(numerics.plan, sizeof numerics.plan, "%s", plan.c_str());
  };
}

constexpr const char* kFp8 = "grouped_gemm data=unit_probes d_type=f32 kind=fp8_per_tensor splits=80,0,64 N=16 K=64";
constexpr const char* kBf16 = "grouped_gemm data=unit_probes d_type=f32 kind=bf16 splits=72,0,72 N=16 K=16";

TEST(UnitProbes, NameTheUnitThatABackendBehavesAs) {
  Rogue rogue;
  behave(rogue, "sm90.wgmma.fp8", "cublaslt.sm90.fp8_tensor.fast", 16, 13, 13);
  Judgement judgement = judge_text(rogue, kFp8);
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_TRUE(contains(
      judgement.text,
      "  stated  the backend states sm90.wgmma.fp8 (32 products a step, F = 13, a sum of 13 bits, truncated), behaves as "
      "sm89.mma.fp8 (16 products a step, F = 13, a sum of 13 bits, truncated)\n"))
      << judgement.text;
  bool found = false;
  for (const Finding& each : judgement.findings)
    found = found || (each.kind == "statement" && contains(each.text, "behaves as sm89.mma.fp8"));
  EXPECT_TRUE(found);

  behave(rogue, "sm90.wgmma.fp8", "cublaslt.sm90.fp8_tensor.fast", 32, 14, 13);
  judgement = judge_text(rogue, kFp8);
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_TRUE(
      contains(judgement.text, "behaves as a unit of other numbers (32 products a step, F = 14, a sum of 13 bits, truncated)"))
      << judgement.text;

  behave(rogue, "sm90.wgmma.fp8", "cublaslt.sm90.fp8_tensor.fast", 32, 13, 13);
  judgement = judge_text(rogue, kFp8);
  EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
}

// Without a plan: sums of no more products than a step are one step of the stated unit.
TEST(UnitProbes, HoldAUnitWithoutAPlanToOneStep) {
  Rogue rogue;
  behave(rogue, "sm90.wgmma.f16", "", 16, 25, 23);
  Judgement judgement = judge_text(rogue, kBf16);
  EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
  EXPECT_EQ(judgement.basis, CheckBasis::bits);
  behave(rogue, "sm90.wgmma.f16", "", 16, 24, 23);  // within the bound of any order
  judgement = judge_text(rogue, kBf16);
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_TRUE(contains(judgement.text, "states sm90.wgmma.f16 (16 products a step, F = 25, an f32 sum, truncated), behaves as "))
      << judgement.text;
  behave(rogue, "sm90.wgmma.f16", "", 8, 25, 23);
  judgement = judge_text(rogue, kBf16);
  EXPECT_EQ(judgement.verdict, Verdict::failed);
  EXPECT_TRUE(contains(judgement.text, "behaves as sm90.mma.f16.k8")) << judgement.text;
  // Longer sums, and nothing stated: any order is right.
  behave(rogue, "sm90.wgmma.f16", "", 8, 25, 23);
  judgement = judge_text(rogue, "grouped_gemm data=unit_probes d_type=f32 kind=bf16 splits=72,0,72 N=16 K=64");
  EXPECT_EQ(judgement.basis, CheckBasis::bound);
  behave(rogue, "", "", 16, 24, 23);
  judgement = judge_text(rogue, kBf16);
  EXPECT_EQ(judgement.verdict, Verdict::passed) << judgement.text;
  EXPECT_EQ(judgement.basis, CheckBasis::bound);
}

TEST(UnitProbes, StandInStandardForEveryKindAndLayout) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (!is_unit_probe(line)) continue;
    met.insert(line.text("kind") + " " + line.text("layout"));
    const bool rows = line.text("layout") != "NT";
    std::int64_t sums = rows ? 0 : line.integer("N");
    for (const std::int64_t each : line.splits()) sums += rows ? each : 0;
    EXPECT_GE(sums, static_cast<std::int64_t>(unit_probes().size())) << to_text(line);
  }
  for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block"}) {
    for (const char* layout : {"TN", "NN", "NT"})
      EXPECT_TRUE(met.count(std::string(kind) + " " + layout)) << kind << " " << layout;
  }
}

}  // namespace
}  // namespace assay::conformance
