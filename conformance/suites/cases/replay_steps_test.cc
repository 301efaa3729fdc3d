// What changes between the replays of a call: every tensor that any op reads, in some line of the standard profile.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "conformance/cases/catalogue.h"
#include "conformance/cases/generator.h"
#include "conformance/cases/replay_steps.h"

namespace assay::conformance {
namespace {

TEST(ReplaySteps, EveryInputOfEveryOpChangesInSomeStandardLine) {
  std::map<std::string, std::set<std::string>> read, changed;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario") continue;
    const bool replayed = replay_plan(line).count > 0;
    if (!replayed && cost_of(line).elements > 100'000) continue;  // other lines of the op name the same inputs
    for (const auto& [name, tensor] : generate(line).in) read[line.op].insert(name);
    if (!replayed) continue;
    const std::vector<golden::Case> steps = replay_steps(line);
    for (const auto& [name, tensor] : steps[0].in) {
      for (const golden::Case& step : steps) {
        if (step.in.at(name).bytes != tensor.bytes) changed[line.op].insert(name);
      }
    }
  }
  EXPECT_EQ(read.size(), 13u);
  for (const auto& [op, names] : read) {
    for (const std::string& name : names) EXPECT_TRUE(changed[op].count(name) != 0) << op << ": in/" << name << " is the same in every replay";
  }
}

}  // namespace
}  // namespace assay::conformance
