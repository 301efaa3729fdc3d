#include "conformance/generate/ops.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"
#include "conformance/support/counter_random.h"
#include "reference/layout/swizzle.h"

namespace assay::conformance::inputs {

// Scale bytes in sequence, so that no two neighbours are equal.
void generate_swizzle(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const Rows rows = rows_of(line);
  const std::int64_t columns = line.integer("K");
  const Direction direction = line.text("direction") == "columnwise" ? Direction::columnwise : Direction::rowwise;
  result.attributes["recipe"] = line.text("recipe");
  result.attributes["direction"] = line.text("direction");
  result.attributes["R"] = rows.total;
  result.attributes["K"] = columns;
  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");

  const bool from_compact = line.op == "swizzle";
  Tensor scales = block_scales_tensor({.kind = ScaleKind::ones, .tensor = "scales"}, recipe, direction, rows.splits, columns,
                                      rows.grouped, ScaleLayout::compact);
  const std::vector<std::int64_t> offsets = scale_offsets(recipe, direction, rows.splits, columns);
  const CounterRandom random(static_cast<std::uint64_t>(line.integer("seed")), "scales");
  Tensor swizzled = make(scales.type, scales.shape);
  for (std::size_t g = 0; g < rows.splits.size(); ++g) {
    const ScaleShape shape = scale_shape(recipe, direction, rows.splits[g], columns);
    std::uint8_t* group = scales.as<std::uint8_t>() + offsets[g];
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      for (std::int64_t j = 0; j < shape.used_columns; ++j) {
        const std::int64_t at = i * shape.columns + j;
        group[at] = static_cast<std::uint8_t>(1 + random.below(static_cast<std::uint64_t>(offsets[g] + at), 254));
      }
    }
    const auto size = static_cast<std::size_t>(shape.elements());
    swizzle_scales(recipe, direction, rows.splits[g], columns, {group, size}, {swizzled.as<std::uint8_t>() + offsets[g], size});
  }
  result.in[from_compact ? "compact" : "swizzled"] = from_compact ? std::move(scales) : std::move(swizzled);
}

}  // namespace assay::conformance::inputs
