#include "conformance/generate/ops.h"

#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

constexpr std::string_view kAbsent = ":absent";

void generate_offsets(const CaseLine& line, Case& result) {
  if (line.op == "splits_to_offsets_2d") {
    const Format type = format_of(line.text("x_type"));
    result.in["first"] = integers_tensor(line.splits("first"), type, "first");
    result.in["last"] = integers_tensor(line.splits("last"), type, "last");
    return;
  }
  const bool multi = line.op == "splits_to_offsets_multi";
  result.in["splits"] = integers_tensor(line.splits(), multi ? format_of(line.text("x_type")) : Format::i64, "splits");
  if (multi) {
    std::string outputs = line.text("outputs");  // all outputs, requested or not
    for (std::size_t at; (at = outputs.find(kAbsent)) != std::string::npos;) outputs.erase(at, kAbsent.size());
    result.attributes["outputs"] = outputs;
  } else {
    result.attributes["stride"] = line.integer("stride");
  }
}

}  // namespace assay::conformance::inputs
