// Values that are lists of words, read: replay=4:data,splits and outputs=1:i64,7:i32:inclusive.

#include <algorithm>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_value.h"

namespace assay::conformance {

ReplayPlan replay_plan(const CaseLine& line) {
  ReplayPlan plan;
  if (!line.has("replay")) return plan;
  const std::string value = line.text("replay");
  const std::size_t colon = std::min(value.find(':'), value.size());
  plan.count = static_cast<int>(integer_of("replay", std::string_view(value).substr(0, colon), 1));
  for (const std::string_view item : items_of(std::string_view(value).substr(std::min(colon + 1, value.size())))) {
    plan.data |= item == "data";
    plan.splits |= item == "splits";
    plan.scales |= item == "scales";
    plan.noop |= item == "noop";
    plan.pieces |= item == "pieces";
  }
  return plan;
}

std::vector<OffsetsOutputSpec> offsets_outputs(const CaseLine& line) {
  std::vector<OffsetsOutputSpec> outputs;
  const std::string value = line.text("outputs");
  for (const std::string_view item : items_of(value)) {
    const std::vector<std::string_view> parts = words_of(item, ':');
    outputs.push_back({*number<std::int64_t>(parts[0]), parts[1] == "i32", parts.size() > 2 && parts[2] == "inclusive",
                       parts.back() == "absent"});
  }
  return outputs;
}

}  // namespace assay::conformance
