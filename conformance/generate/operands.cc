#include "conformance/generate/operands.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "conformance/generate/compose.h"
#include "reference/types/error.h"

namespace assay::conformance::inputs {

void add_operand(Case& result, const OperandRequest& operand) {
  PatternRequest pattern = operand.pattern;
  pattern.type = operand.type;
  pattern.tensor = operand.name;
  pattern.rows = operand.total_rows;
  pattern.columns = operand.columns;
  const bool packed = operand.type == Format::e2m1;
  const bool transposed = operand.columnwise && operand.recipe != Recipe::mxfp8;
  const std::int64_t active = operand.placed ? operand.total_rows : sum_of(operand.splits);
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
  if (operand.scales_of_rows >= 0) {
    result.in[prefix + "scale_inv"] = group_floats(scale, static_cast<std::size_t>(operand.scales_of_rows));
    return;
  }
  result.in[prefix + "scale_inv"] = block_scales_tensor(
      scale, operand.recipe, operand.columnwise ? Direction::columnwise : Direction::rowwise,
      operand.scale_rows.empty() ? operand.splits : operand.scale_rows, operand.columns, true, operand.scale_layout);
  if (operand.recipe == Recipe::nvfp4) {
    ScaleRequest amax = operand.scale;
    amax.tensor = prefix + "amax";
    amax.centre = 2;
    amax.level = amax.kind == ScaleKind::ones;
    if (operand.even_amax) {  // the largest code times the largest scale: the recipe's constant is its square
      std::vector<double> values(operand.splits.size());
      for (std::size_t g = 0; g < values.size(); ++g) values[g] = 6.0 * 448.0 * static_cast<double>(1 + g % 2);
      result.in[prefix + "amax"] = floats_tensor(values);
      return;
    }
    result.in[prefix + "amax"] = group_floats(amax, operand.splits.size());
  }
}

WideSums wide_sums_for(std::int64_t longest, int fraction_bits, std::int64_t block, bool outside, Format element, Format output,
                       int spare) {
  const bool narrow = output != Format::f32;
  const int most = 23 - spare;  // fraction bits of f32 that are left
  const std::int64_t blocks = block == 0 ? 1 : std::max<std::int64_t>(1, (longest + block - 1) / block);
  const int several = std::bit_width(static_cast<std::uint64_t>(blocks - 1));
  const int reach = element == Format::e2m1 ? 6 : fields_of(element).bits == 8 ? 14 : 23;  // of an anchor

  WideSums sums;
  sums.period = block;
  sums.spread = block == 0 ? 1 : narrow ? 1 : 3;
  const int inside = std::min(fraction_bits, reach);
  while (sums.spread > 0 && block != 0 && (outside ? inside : 6) + 2 * sums.spread + several > most) --sums.spread;
  sums.anchor = block == 0 ? std::min(inside, most) : outside ? inside : std::min(inside, most - 2 * sums.spread - several);
  // The sum of everything but the anchors stays below three quarters of one.
  const std::int64_t length = std::max<std::int64_t>(block == 0 ? longest : std::min(block, longest), 1);
  const int largest = narrow                         ? (output == Format::bf16 ? 2 : 4)
                      : element == Format::e2m1      ? 4
                      : fields_of(element).bits == 8 ? 7
                                                     : 255;
  sums.amplitude = largest;
  while (sums.amplitude > 2 && length * sums.amplitude * sums.amplitude > (std::int64_t{3} << sums.anchor) / 4) --sums.amplitude;
  require(element == Format::e2m1 || length * 2 <= (std::int64_t{3} << sums.anchor) / 4, "data", "wide_sums",
          "a sum of at most " + show((std::int64_t{3} << sums.anchor) / 8) + " products, not " + show(length));
  return sums;
}

int amplitude_for(std::int64_t length, std::int64_t spread) {
  for (const int amplitude : {4, 2}) {
    if (amplitude * amplitude * spread * spread * std::max<std::int64_t>(length, 1) <= 8192) return amplitude;
  }
  return 1;
}

}  // namespace assay::conformance::inputs
