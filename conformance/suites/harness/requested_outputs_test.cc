// Every output that an op has is requested by some case of standard, for every recipe that has it.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/catalogue.h"
#include "conformance/cases/generator.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

TEST(Standard, RequestsEveryOutput) {
  std::map<std::string, std::set<std::string>> there, requested;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || line.has("replay") || cost_of(line).elements > 20'000) continue;
    const std::string subject = line.op + (find_key(*find_op(line.op), "recipe") != nullptr ? " " + line.text("recipe") : "");
    for (const std::string& name : wanted_outputs(line)) requested[subject].insert(name.starts_with("offsets_") ? "offsets_" : name);
    golden::Case made = generate(line);
    for (const OutputSpec& each : outputs_of(Request::of(made))) there[subject].insert(each.name.starts_with("offsets_") ? "offsets_" : each.name);
  }
  there["quantize tensor_delayed"].erase("scale");  // an input that goes out as it came in: for fixtures that record it
  for (const auto& [subject, outputs] : there) {
    for (const std::string& name : outputs) EXPECT_TRUE(requested[subject].count(name)) << subject << ": " << name;
  }
  EXPECT_GE(there.size(), 13u);
}

}  // namespace
}  // namespace assay::conformance
