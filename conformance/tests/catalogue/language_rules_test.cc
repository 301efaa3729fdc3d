#include "conformance/cases/language_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"

namespace assay::conformance {
namespace {

std::set<std::string> presets_of(Profile profile) {
  std::set<std::string> names;
  for (const CaseLine& each : catalogue(profile)) {
    if (each.op == "quantize_by_rule") names.insert(each.text("preset"));
  }
  return names;
}

TEST(LanguageRules, EachIsInACaseAndIsNoPreset) {
  const std::set<std::string> named = presets_of(Profile::full);
  ASSERT_FALSE(language_rules().empty());
  for (const ScaleRule& each : language_rules()) {
    EXPECT_EQ(named.count(each.name), 1u) << each.name;
    EXPECT_EQ(find_scale_rule(each.name), nullptr) << each.name;
    EXPECT_EQ(find_case_rule(each.name), &each);
  }
  EXPECT_EQ(find_case_rule("deepgemm"), find_scale_rule("deepgemm"));
  EXPECT_EQ(find_case_rule("language.none"), nullptr);
}

TEST(LanguageRules, ACallStatesTheRow) {
  const Case made = generate(parse_case_line("quantize_by_rule preset=language.sum R=2 K=16"));
  EXPECT_EQ(std::get<std::string>(made.attributes.at("rule")),
            "name=language.sum blocks=1x16 rule=\"s = block_sum(x); scale = s; code = x\" source=\"spec scale-rules-2.4\" "
            "evidence=\"not compared by us\"");
}

}  // namespace
}  // namespace assay::conformance
