#include "conformance/generate/ops.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

void generate_dequantize(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const Rows rows = rows_of(line);
  const std::int64_t columns = line.integer("K");
  const bool columnwise = line.text("direction") == "columnwise";
  const Format type = format_of(line.text("otype"));
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  result.attributes["recipe"] = line.text("recipe");
  result.attributes["otype"] = line.text("otype");
  set_text_attribute(line, "d_type", result);
  result.attributes["direction"] = line.text("direction");
  result.attributes["R"] = rows.total;
  result.attributes["K"] = columns;
  const bool swizzled = line.text("scale_layout") == "swizzled";
  if (recipe == Recipe::mxfp8 || recipe == Recipe::nvfp4) result.attributes["scale_layout"] = line.text("scale_layout");
  if (line.integer("e4m3_max") != 448) result.attributes["e4m3_max"] = line.integer("e4m3_max");
  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");

  const std::string data = line.text("data"), prefix = line.text("direction") + "_";
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = type;
  pattern.seed = seed;
  pattern.tensor = "x";
  pattern.rows = rows.total;
  pattern.columns = columns;
  std::vector<std::uint32_t> bits = pattern_bits(pattern);
  poison_tail(bits, rows.active, columns, type);
  const std::int64_t halves = type == Format::e2m1 ? 2 : 1;
  Tensor codes = make(type, {rows.total, columns / halves});
  if (columnwise && recipe != Recipe::mxfp8) {
    bits = transpose_groups(bits, rows.splits, columns);
    codes.shape =
        rows.grouped ? std::vector<std::int64_t>{codes.elements()} : std::vector<std::int64_t>{columns, rows.total / halves};
  }
  store(bits, codes);
  result.in[prefix + "data"] = std::move(codes);

  const ScaleKind kind = scale_kind_of(line.text("scales"));
  const int tie_bits = line.text("d_type") == "f16" ? 12 : 9;
  result.in[prefix + "scale_inv"] =
      block_scales_tensor({.kind = kind, .seed = seed, .tensor = prefix + "scale_inv", .tie_bits = tie_bits}, recipe,
                          columnwise ? Direction::columnwise : Direction::rowwise, rows.splits, columns, rows.grouped,
                          swizzled ? ScaleLayout::swizzled : ScaleLayout::compact);
  if (recipe == Recipe::nvfp4) {
    result.in["amax"] = group_floats({.kind = kind, .seed = seed, .tensor = "amax", .centre = 2}, rows.splits.size());
  }
}

}  // namespace assay::conformance::inputs
