#include "conformance/cases/generator_operands.h"

#include <algorithm>
#include <utility>

namespace assay::conformance::inputs {

void add_operand(Case& result, const OperandRequest& operand) {
  PatternRequest pattern = operand.pattern;
  pattern.type = operand.type;
  pattern.tensor = operand.name;
  pattern.rows = operand.total_rows;
  pattern.columns = operand.columns;
  const bool packed = operand.type == Format::e2m1;
  const bool transposed = operand.columnwise && operand.recipe != Recipe::mxfp8;
  const std::int64_t active = sum_of(operand.splits);
  Tensor data = make(operand.type, {operand.total_rows, packed ? operand.columns / 2 : operand.columns});
  if (transposed && packed) {  // two rows share a byte
    std::vector<std::uint32_t> bits = pattern_bits(pattern);
    poison_tail(bits, active, operand.columns, operand.type);
    store(transpose_groups(bits, operand.splits, operand.columns), data);
  } else {
    store_pattern(pattern, active, data, transposed ? &operand.splits : nullptr);
  }
  if (transposed) data.shape = {data.elements()};
  if (!operand.scaled) {
    result.in[operand.name] = std::move(data);
    return;
  }
  const std::string prefix = operand.name + (operand.columnwise ? "_columnwise_" : "_rowwise_");
  ScaleRequest scale = operand.scale;
  scale.tensor = prefix + "scale_inv";
  result.in[prefix + "data"] = std::move(data);
  result.in[prefix + "scale_inv"] =
      block_scales_tensor(scale, operand.recipe, operand.columnwise ? Direction::columnwise : Direction::rowwise,
                          operand.splits, operand.columns, true, operand.scale_layout);
  if (operand.recipe == Recipe::nvfp4) {
    ScaleRequest amax = operand.scale;
    amax.tensor = prefix + "amax";
    amax.centre = 2;
    amax.level = amax.kind == ScaleKind::ones;
    result.in[prefix + "amax"] = group_floats(amax, operand.splits.size());
  }
}

int amplitude_for(std::int64_t length, std::int64_t spread) {
  for (const int amplitude : {4, 2}) {
    if (amplitude * amplitude * spread * spread * std::max<std::int64_t>(length, 1) <= 8192) return amplitude;
  }
  return 1;
}

}  // namespace assay::conformance::inputs
