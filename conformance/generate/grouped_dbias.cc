#include "conformance/generate/ops.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

void generate_grouped_dbias(const CaseLine& line, Case& result) {
  const Rows rows = rows_of(line);
  const std::string data = line.text("data");
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = format_of(line.text("x_type"));
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.tensor = "dy";
  pattern.rows = rows.total;
  pattern.columns = line.integer("K");
  pattern.amplitude = 15;
  result.in["dy"] = matrix(pattern, rows.active);
  result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  result.attributes["accumulate"] = line.integer("accumulate");
  if (line.integer("accumulate") == 1) {
    pattern.pattern = data == "integers" ? "integers" : "uniform";
    pattern.type = Format::f32;
    pattern.tensor = "dbias";
    pattern.rows = static_cast<std::int64_t>(rows.splits.size());
    result.in["dbias"] = matrix(pattern, pattern.rows);
  }
}

}  // namespace assay::conformance::inputs
