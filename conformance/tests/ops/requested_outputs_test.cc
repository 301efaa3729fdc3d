// Every output of an op is requested by some case of standard, and is absent where each other output is requested, for every
// recipe that has it.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {
namespace {

TEST(Standard, RequestsEveryOutput) {
  std::map<std::string, std::set<std::string>> there, requested;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || line.has("replay") || cost_of(line).elements > 20'000) continue;
    const std::string subject = line.op + (find_key(*find_op(line.op), "recipe") != nullptr ? " " + line.text("recipe") : "");
    for (const std::string& name : wanted_outputs(line))
      requested[subject].insert(name.starts_with("offsets_") ? "offsets_" : name);
    Case made = generate(line);
    for (const OutputSpec& each : outputs_of(Request::of(made)))
      there[subject].insert(each.name.starts_with("offsets_") ? "offsets_" : each.name);
  }
  there["quantize tensor_delayed"].erase("scale");  // an input that is returned unchanged, for fixtures that record it
  for (const auto& [subject, outputs] : there) {
    for (const std::string& name : outputs) EXPECT_TRUE(requested[subject].count(name)) << subject << ": " << name;
  }
  EXPECT_GE(there.size(), 13u);
}

// A backend that computes one output from another, or writes both, is wrong where one of them is not requested.
TEST(Standard, RequestsEveryOutputWithoutEachOther) {
  std::map<std::string, std::set<std::string>> requested;
  std::map<std::string, std::set<std::pair<std::string, std::string>>> apart;  // the first without the second
  const std::vector<CaseLine> lines = catalogue(Profile::standard);
  const auto subject_of = [](const CaseLine& line) {
    return line.op + (find_key(*find_op(line.op), "recipe") != nullptr ? " " + line.text("recipe") : "");
  };
  for (const CaseLine& line : lines) {
    if (line.op == "scenario" || line.op == "splits_to_offsets_multi") continue;
    for (const std::string& name : wanted_outputs(line)) requested[subject_of(line)].insert(name);
  }
  for (const CaseLine& line : lines) {
    if (line.op == "scenario" || line.op == "splits_to_offsets_multi") continue;  // those have a test below
    const std::vector<std::string> wanted = wanted_outputs(line);
    for (const std::string& name : wanted) {
      for (const std::string& other : requested[subject_of(line)]) {
        if (std::find(wanted.begin(), wanted.end(), other) == wanted.end()) apart[subject_of(line)].insert({name, other});
      }
    }
  }
  int pairs = 0;
  for (const auto& [subject, names] : requested) {
    for (const std::string& name : names) {
      for (const std::string& other : names) {
        if (name == other) continue;
        EXPECT_TRUE(apart[subject].count({name, other})) << subject << ": no line has " << name << " without " << other;
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 150);
}

// The attribute names all offsets; the call has some of them.
TEST(Standard, LeavesOutOneOfSeveralOffsets) {
  std::set<std::string> left_out;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op != "splits_to_offsets_multi") continue;
    const std::vector<OffsetsOutputSpec> all = offsets_outputs(line);
    const std::vector<std::string> wanted = wanted_outputs(line);
    const Case made = generate(line);
    EXPECT_EQ(std::get<std::string>(made.attributes.at("outputs")).find("absent"), std::string::npos) << to_text(line);
    if (wanted.size() == all.size()) continue;
    left_out.insert(all.front().absent ? "first" : all.back().absent ? "last" : "between");
  }
  EXPECT_EQ(left_out, (std::set<std::string>{"between", "first", "last"}));
}

}  // namespace
}  // namespace assay::conformance
