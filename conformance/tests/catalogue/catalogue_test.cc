// The catalogue: its contents, which are the same on every machine, selection and shards.

#include "conformance/catalogue/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/covering.h"
#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// A program asks for it in several places.
TEST(Catalogue, IsComputedOnceInAProcess) {
  for (const Profile profile : {Profile::smoke, Profile::standard, Profile::full})
    EXPECT_EQ(&catalogue(profile), &catalogue(profile));
}

TEST(Catalogue, IsWhatTheBuildWrote) { EXPECT_EQ(catalogue(Profile::standard), computed_catalogue(Profile::standard)); }

TEST(Catalogue, GrowsFromSmokeToFullWithoutRepeating) {
  const auto &smoke = catalogue(Profile::smoke), &standard = catalogue(Profile::standard), &full = catalogue(Profile::full);
  EXPECT_GE(smoke.size(), 40u);
  EXPECT_GE(standard.size(), 1000u);
  EXPECT_LE(standard.size(), 7500u);
  EXPECT_GT(full.size(), 3 * standard.size() / 2);
  EXPECT_TRUE(std::equal(smoke.begin(), smoke.end(), standard.begin()));
  EXPECT_TRUE(std::equal(standard.begin(), standard.end(), full.begin()));
  std::set<std::string> texts, names;
  for (const CaseLine& line : full) {
    EXPECT_TRUE(texts.insert(to_text(line)).second) << to_text(line);
    EXPECT_TRUE(names.insert(name_of(line)).second) << name_of(line);
    EXPECT_EQ(parse_case_line(to_text(line)), line);
  }
}

TEST(Catalogue, KeepsToItsBudget) {
  for (const auto& [profile, macs, elements] :
       {std::tuple{Profile::smoke, 20'000'000, 3'000'000}, {Profile::standard, 530'000'000, 166'000'000}}) {
    CaseCost all;
    for (const CaseLine& line : catalogue(profile)) {
      const CaseCost cost = cost_of(line);
      all.macs += cost.macs, all.elements += cost.elements;
    }
    EXPECT_LE(all.macs, macs);
    EXPECT_LE(all.elements, elements);
  }
}

TEST(Catalogue, SmokeTouchesEveryOpAndEveryRecipe) {
  std::map<std::string, std::set<std::string>> seen;
  for (const CaseLine& line : catalogue(Profile::smoke)) {
    const std::string key = line.op == "grouped_gemm" ? "kind" : "recipe";
    seen[line.op].insert(line.has(key) ? line.text(key) : "");
    if (line.op == "grouped_gemm") seen["layout of " + line.text("kind")].insert(line.text("layout"));
  }
  for (const OpSchema& op : case_schema()) EXPECT_TRUE(seen.count(std::string(op.op))) << op.op;
  EXPECT_EQ(seen["quantize"].size(), 6u);
  EXPECT_EQ(seen["grouped_gemm"].size(), 6u);
  EXPECT_EQ(seen["layout of fp8_block"].size(), 3u);
}

// There are few recorded cases, and a fault that only one of them finds is easily missed. The lines of smoke therefore cover what
// only recorded cases covered.
TEST(Catalogue, SmokeNeedsNoFixtureForTheseConditions) {
  const auto met = [&](const std::string& op, const std::string& words, const std::function<bool(const CaseLine&)>& more = {}) {
    for (const CaseLine& line : catalogue(Profile::smoke)) {
      if (line.op != op || (more && !more(line))) continue;
      const std::vector<std::string_view> all = words_of(words);
      if (std::all_of(all.begin(), all.end(), [&](std::string_view word) {
            const std::size_t equals = word.find('=');
            return line.has(word.substr(0, equals)) && line.text(word.substr(0, equals)) == word.substr(equals + 1);
          })) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(met("quantize", "recipe=tensor_current x_type=f32 otype=e5m2 data=every_special"));
  EXPECT_TRUE(met("quantize", "pow2=1 data=adversarial_eps", [](const CaseLine& line) { return line.real("eps") > 0; }));
  EXPECT_TRUE(met("quantize", "pow2=1 dbias=1 otype=e5m2"));
  EXPECT_TRUE(met("quantize", "x_type=f32 data=subnormals"));
  EXPECT_TRUE(met("quantize", "recipe=block_128x128", [](const CaseLine& line) { return line.integer("K") % 128 == 65; }));
  EXPECT_TRUE(met("quantize", "two_dimensional=1 e4m3_max=256"));
  EXPECT_TRUE(met("quantize", "amax=apart"));
  EXPECT_TRUE(met("dequantize", "recipe=block_1x128 direction=columnwise d_type=f16"));
  EXPECT_TRUE(met("dequantize", "recipe=mxfp8 scales=specials"));
  EXPECT_TRUE(met("delayed_update", "", [](const CaseLine& line) { return line.integer("margin") < 0; }));
  EXPECT_TRUE(met("splits_to_offsets_multi", "x_type=i32",
                  [](const CaseLine& line) { return line.text("outputs").find("i32:inclusive") < 99; }));
  EXPECT_TRUE(met("grouped_gemm", "kind=mxfp8 scale_layout=compact"));
  EXPECT_TRUE(met("grouped_gemm", "kind=f16 data=full_exponent"));
  EXPECT_TRUE(met("grouped_gemm", "kind=bf16 data=subnormals"));
  // D ends off a boundary of 16 bytes.
  EXPECT_TRUE(met("grouped_gemm", "layout=NN d_type=f32", [](const CaseLine& line) {
    std::int64_t rows = 0;
    for (const std::int64_t each : line.splits()) rows += each;
    return rows * line.integer("K") % 4 != 0;
  }));
  // The last tile of the scales has columns to exchange.
  EXPECT_TRUE(
      met("swizzle", "recipe=mxfp8", [](const CaseLine& line) { return line.has("splits") && line.integer("K") % 128 == 0; }));
}

// Each value of each choice occurs, each with every pattern that its op has, and so do all pairs of recipe, shape and data.
TEST(Catalogue, StandardMeetsEveryChoice) {
  std::set<std::string> met;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    const OpSchema* op = find_op(line.op);
    for (const KeySchema& key : op->keys) {
      if (line.has(key.key)) met.insert(line.op + " " + std::string(key.key) + "=" + line.text(key.key));
    }
  }
  const std::set<std::string> not_in_standard{"quantize direction=",
                                              "grouped_gemm check=bound",
                                              "grouped_dbias check=bound",
                                              "linear_forward check=bound",
                                              "linear_dgrad check=bound",
                                              "linear_wgrad check=bound",
                                              "linear_forward check=order_free",
                                              "linear_dgrad check=order_free",
                                              "linear_wgrad check=order_free"};
  for (const OpSchema& op : case_schema()) {
    for (const KeySchema& key : op.keys) {
      if (key.allowed.empty()) continue;
      for (const auto word : words_of(key.allowed)) {
        const std::string text = std::string(op.op) + " " + std::string(key.key) + "=" + std::string(word);
        const bool own_data = key.key == "data" && !op.op.starts_with("quantize") && op.op != "grouped_gemm";
        if (own_data || not_in_standard.count(text)) continue;  // patterns are covered by quantize and by products
        EXPECT_TRUE(met.count(text)) << text;
      }
    }
  }
}

TEST(Covering, MeetsEveryPairThatMayMeet) {
  const std::vector<Axis> axes{
      {"R=33 K=8", "splits=1,2 K=8", "R=0 K=3"}, {"x_type=bf16", "x_type=f16", "x_type=f32"}, {"", "pow2=1"}, {"", "otype=e5m2"}};
  const auto lines = covering_lines("quantize recipe=block_1x128", axes, 1);
  EXPECT_LE(lines.size(), 12u);
  int pairs = 0;
  for (const std::string first : {"R=33", "splits=1,2", "R=0"}) {
    for (const std::string type : {"bf16", "f16", "f32"}) {
      bool found = false;
      for (const CaseLine& line : lines) {
        found |= (" " + to_text(line)).find(" " + first) != std::string::npos && line.text("x_type") == type;
      }
      EXPECT_TRUE(found) << first << " " << type;
      pairs += found;
    }
  }
  EXPECT_EQ(pairs, 9);
  EXPECT_EQ(covering_lines("quantize recipe=block_1x128", axes, 1), lines);
}

TEST(Covering, LeavesOutWhatIsRefusedOrTooDear) {
  const std::vector<Axis> axes{{"", "eps=0.5"}, {"R=8 K=8", "R=100000 K=100000"}};
  for (const CaseLine& line : covering_lines("quantize recipe=mxfp8", axes, 1)) {  // mxfp8 takes no eps
    EXPECT_EQ(line.integer("K"), 8);
    EXPECT_EQ(line.real("eps"), 0);
  }
}

TEST(Select, NeedsEveryWordAndNamesTheOnesThatFindNothing) {
  const auto cases = catalogue_without_covers(Profile::smoke);
  EXPECT_EQ(select(cases, {}).cases, cases);
  const Selection block = select(cases, {"grouped_gemm", "fp8_block"});
  EXPECT_GE(block.cases.size(), 5u);
  EXPECT_TRUE(block.unmatched.empty());
  for (const CaseLine& line : block.cases) EXPECT_EQ(line.text("kind"), "fp8_block");
  EXPECT_EQ(select(cases, {"quantize/nvfp4"}).cases.size(), 10u);  // part of a name: it also matches dequantize
  EXPECT_EQ(select(cases, {name_of(cases[9])}).cases, (std::vector<CaseLine>{cases[9]}));
  EXPECT_EQ(select(cases, {"seed=12"}).cases.size(), 1u);  // part of the text
  EXPECT_EQ(select(cases, {"seed=7?"}).cases.size(), 6u);  // a pattern, a whole word: 70 to 75
  EXPECT_EQ(select(cases, {"K=1*4"}).cases.size(), select(cases, {"K=144"}).cases.size());
  EXPECT_EQ(select(cases, {"quantize/*/ties/*"}).cases.size(), 2u);
  const Selection none = select(cases, {"quantize", "blok", "fp16"});
  EXPECT_TRUE(none.cases.empty());
  EXPECT_EQ(none.unmatched, (std::vector<std::string>{"blok", "fp16"}));
  const Selection apart = select(cases, {"unswizzle", "f32"});  // each matches some case, both together none
  EXPECT_TRUE(apart.cases.empty());
  EXPECT_TRUE(apart.unmatched.empty());
}

TEST(Profile, HasNames) {
  EXPECT_EQ(profile_named("standard"), Profile::standard);
  EXPECT_EQ(profile_named("quick"), std::nullopt);
}

}  // namespace
}  // namespace assay::conformance
