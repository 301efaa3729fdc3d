// Changes between the replays of a call: every tensor that any op reads changes as a whole, and in a few bytes only.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"
#include "conformance/ops/tensor_schema.h"

namespace assay::conformance {
namespace {

// A tensor has three places: its first 16 bytes, its last 16, and those between.
enum Place { kFirst, kMiddle, kLast };
constexpr const char* kPlaces[] = {"first", "middle", "last"};

std::set<Place> changed_places(const Tensor& before, const Tensor& after) {
  std::set<Place> places;
  for (std::size_t at = 0; at < before.bytes.size(); ++at) {
    if (before.bytes[at] == after.bytes[at]) continue;
    if (at < 16) places.insert(kFirst);
    if (at + 16 >= before.bytes.size()) places.insert(kLast);
    if (at >= 16 && at + 16 < before.bytes.size()) places.insert(kMiddle);
  }
  return places;
}

std::int64_t changed_bytes(const Tensor& before, const Tensor& after) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < before.bytes.size(); ++at) count += before.bytes[at] != after.bytes[at];
  return count;
}

TEST(ChangedInputs, EveryInputOfEveryOpChangesInSomeStandardLine) {
  std::map<std::string, std::set<std::string>> changed;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || replay_plan(line).count == 0) continue;
    const std::vector<Case> steps = replay_steps(line);
    for (const auto& [name, tensor] : steps[0].in) {
      for (const Case& step : steps) {
        if (step.in.at(name).bytes != tensor.bytes) changed[line.op].insert(name);
      }
    }
  }
  EXPECT_EQ(tensor_schema().size(), 16u);
  for (const OpTensors& op : tensor_schema()) {
    for (const TensorSchema& each : op.in) {
      EXPECT_TRUE(changed[std::string(op.op)].count(each.name))
          << op.op << ": in/" << each.name << " is the same in every replay";
    }
  }
}

// A backend that keeps an input by its address and some of its contents is found only where all other contents are those of the
// replay before.
TEST(ChangedInputs, EveryInputOfEveryOpChangesInSixteenBytesAlone) {
  std::map<std::string, std::map<std::string, std::set<Place>>> alone;
  std::map<std::string, std::map<std::string, std::size_t>> longest;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (!replay_plan(line).pieces) continue;
    const std::vector<Case> steps = replay_steps(line);
    for (const auto& [name, tensor] : steps[0].in) {
      longest[line.op][name] = std::max(longest[line.op][name], tensor.bytes.size());
      for (std::size_t i = 1; i < steps.size(); ++i) {
        const Tensor &before = steps[i - 1].in.at(name), &after = steps[i].in.at(name);
        const std::set<Place> places = changed_places(before, after);
        EXPECT_LE(changed_bytes(before, after), 16) << to_text(line) << ": in/" << name << ", replay " << i + 1;
        // Scales of few blocks have padding between them, so that 16 bytes of scales can extend from the first to the last.
        if (places.size() <= 2) alone[line.op][name].insert(places.begin(), places.end());
      }
    }
  }
  for (const OpTensors& op : tensor_schema()) {
    for (const TensorSchema& each : op.in) {
      // Integers and flags are read as a whole, and change in other lines.
      const std::set<std::string> whole{"splits", "m_indices", "psum", "row_map", "noop"};
      if (whole.count(each.name) != 0 || op.op.starts_with("splits_to_offsets")) continue;
      const std::set<Place>& met = alone[std::string(op.op)][each.name];
      const std::size_t bytes = longest[std::string(op.op)][each.name];
      EXPECT_GT(bytes, 0u) << op.op << ": in/" << each.name;
      for (const Place place : {kFirst, kMiddle, kLast}) {
        if (place == kMiddle && bytes <= 48) continue;
        EXPECT_TRUE(met.count(place)) << op.op << ": in/" << each.name << ": " << kPlaces[place];
      }
    }
  }
}

}  // namespace
}  // namespace assay::conformance
