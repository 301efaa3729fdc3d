// The page that lists the hints has exactly the rows of the tables.

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "conformance/diagnose/other_calls/nvfp4_rules.h"
#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_ways.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/product.h"

namespace assay::conformance::diagnosis {
namespace {

// Numbers as N, names of plans and units as NAME.
std::string pattern_of(std::string text) {
  text = std::regex_replace(text, std::regex("under the plan .*"), "under the plan NAME");
  text = std::regex_replace(text, std::regex("arithmetic of the unit .*"), "arithmetic of the unit NAME");
  text = std::regex_replace(text, std::regex("2\\^-[0-9]+"), "2^-N");
  return std::regex_replace(text, std::regex("\\b[0-9]+\\b"), "N");
}

std::set<std::string> of_tables() {
  std::set<std::string> texts;
  for (const std::string& each : input_change_texts()) texts.insert(pattern_of("with INPUT " + each));
  for (const std::string& each : outcome_texts()) texts.insert(pattern_of(each));
  for (const std::string& each : update_rule_texts()) texts.insert(pattern_of(each));
  for (const NamedRules& each : quantize_rules()) texts.insert(pattern_of(each.text));
  for (const NamedNvfp4Rules& each : nvfp4_rules()) texts.insert(pattern_of(each.text));
  for (const char* line : {"grouped_gemm kind=f16 alpha=0.5 beta=0.5 bias=1 d_type=f16 splits=20,30 N=24 K=77 seed=1",
                           "grouped_gemm kind=fp8_per_tensor layout=NT alpha=0.5 beta=0.5 splits=20,30 N=24 K=72 seed=2",
                           "grouped_gemm kind=fp8_block splits=20,30 N=24 K=300 seed=3"}) {
    Case problem = generate(parse_case_line(line));
    visit_product(Request::of(problem), [&](const GroupedGemmProblem& product, void* d) {
      const ProductVariant right(view_of(product, d), rows_of(product), columns_of(product));
      for (const auto family : {read_variants, sum_variants, finish_variants}) {
        for (const NamedVariant& each : family(right)) texts.insert(pattern_of(each.text));
      }
    });
  }
  return texts;
}

std::set<std::string> of_page() {
  std::ifstream page(ASSAY_HINTS_PAGE);
  std::set<std::string> texts;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("- `") && line.ends_with('`')) texts.insert(pattern_of(line.substr(3, line.size() - 4)));
  }
  return texts;
}

TEST(HintPage, ListsWhatTheTablesHold) {
  const std::set<std::string> tables = of_tables(), page = of_page();
  EXPECT_GT(tables.size(), 100u);
  for (const std::string& each : tables) EXPECT_EQ(page.count(each), 1u) << "not on the page:\n- `" << each << "`";
  for (const std::string& each : page) EXPECT_EQ(tables.count(each), 1u) << "in no table: " << each;
}

}  // namespace
}  // namespace assay::conformance::diagnosis
