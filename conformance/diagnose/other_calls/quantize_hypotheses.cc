// A quantization by other rules: every row of quantize_rules.h, on the whole output.

#include <algorithm>
#include <bit>
#include <exception>
#include <vector>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"
#include "conformance/diagnose/other_calls/quantized_matrix.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/words.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"

namespace assay::conformance::diagnosis {
namespace {

struct Shape {
  std::int64_t height, width;  // of a block
};
Shape block_of(const QuantizeCall& call, bool rowwise, std::int64_t rows, std::int64_t columns) {
  switch (call.recipe) {
    case Recipe::block_1x128: return rowwise ? Shape{1, 128} : Shape{128, 1};
    case Recipe::block_128x128: return {128, 128};
    case Recipe::mxfp8: return rowwise ? Shape{1, 32} : Shape{32, 1};
    default: return {std::max<std::int64_t>(rows, 1), std::max<std::int64_t>(columns, 1)};
  }
}

// One direction of one group.
struct GroupDirection {
  const QuantizeCall& call;
  const QuantizeRules& rules;
  const TensorView& x;
  bool rowwise, swizzled;
  std::int64_t first_row, rows, columns, first_scale;
  ScaleShape scales;
  const float* given;  // tensor_delayed: the scale

  float value(std::int64_t r, std::int64_t c) const { return scalar::load(x.type, x.data, (first_row + r) * columns + c); }
  std::int64_t data_at(std::int64_t r, std::int64_t c) const {
    const std::int64_t base = first_row * columns;
    return rowwise || call.recipe == Recipe::mxfp8 ? base + r * columns + c : base + c * rows + r;
  }
  // Of block (i, j) in blocks of rows and columns.
  std::int64_t scale_at(std::int64_t i, std::int64_t j) const {
    if (swizzled)
      return first_scale + swizzled_index(rowwise ? i : j, rowwise ? j : i, (rowwise ? scales.columns : scales.rows) / 4);
    bool transposed = false;
    if (call.recipe == Recipe::block_1x128) transposed = rowwise;
    if (call.recipe == Recipe::block_128x128) transposed = !rowwise;
    return first_scale + (transposed ? j * scales.columns + i : i * scales.columns + j);
  }
};

enum class Written { codes, scale_inv, scale, amax };

void quantize(const GroupDirection& part, Written written, Tensor& to) {
  const auto [height, width] = block_of(part.call, part.rowwise, part.rows, part.columns);
  std::vector<float> block;
  for (std::int64_t i = 0; i * height < part.rows; ++i) {
    for (std::int64_t j = 0; j * width < part.columns; ++j) {
      const std::int64_t r1 = std::min((i + 1) * height, part.rows), c1 = std::min((j + 1) * width, part.columns);
      block.clear();
      for (std::int64_t r = i * height; r < r1; ++r) {
        for (std::int64_t c = j * width; c < c1; ++c) block.push_back(part.value(r, c));
      }
      BlockScale scale{1, 0};
      float amax = 0;
      for (const float x : block) amax = scalar::accumulate_absmax(amax, x);
      if (part.rules.amax != nullptr) amax = part.rules.amax(block);
      if (part.given != nullptr) {
        scale = {*part.given, std::bit_cast<std::uint32_t>(1 / *part.given)};
      } else {
        const auto scale_of = part.rules.scale != nullptr ? part.rules.scale : right_scale;
        scale = scale_of(part.call, amax);
      }
      if (written != Written::codes) {
        const std::int64_t at = part.scale_at(i, j);
        if (written == Written::amax || written == Written::scale) {
          to.as<float>()[at] = written == Written::amax ? amax : scale.multiplier;
        } else if (part.call.recipe == Recipe::mxfp8) {
          to.as<std::uint8_t>()[at] = static_cast<std::uint8_t>(scale.stored);
        } else {
          to.as<std::uint32_t>()[at] = scale.stored;
        }
        continue;
      }
      std::size_t n = 0;
      for (std::int64_t r = i * height; r < r1; ++r) {
        for (std::int64_t c = j * width; c < c1; ++c, ++n) {
          float product = part.rules.product != nullptr ? part.rules.product(block[n], scale) : block[n] * scale.multiplier;
          if (part.rules.rounded != nullptr) product = part.rules.rounded(product);
          const auto code = part.rules.code != nullptr ? part.rules.code : scalar::encode_fp8;
          to.as<std::uint8_t>()[part.data_at(r, c)] = code(part.call.output, product);
        }
      }
    }
  }
}

}  // namespace

std::optional<QuantizeCall> quantize_call_of(const Suspect& suspect) {
  if (suspect.request.op() != "quantize") return std::nullopt;
  const bool data = suspect.output == "rowwise_data" || suspect.output == "columnwise_data";
  const QuantizeConfig config = quantize_config_of(suspect.request);
  const bool one_scale = config.recipe == Recipe::tensor_current && (suspect.output == "scale" || suspect.output == "amax");
  if (!data && !one_scale && suspect.output != "rowwise_scale_inv" && suspect.output != "columnwise_scale_inv")
    return std::nullopt;
  if (config.recipe == Recipe::nvfp4 || config.two_dimensional) return std::nullopt;
  const TensorView& x = suspect.request.input("x");
  return QuantizeCall{config.recipe, config.output, x.type, config.force_pow_2_scales, config.amax_epsilon};
}

std::optional<Tensor> quantized_by(const QuantizeRules& rules, const Suspect& suspect) {
  const auto call = quantize_call_of(suspect);
  if (!call) return std::nullopt;
  const QuantizedMatrix matrix(suspect.request, suspect.request.input("x"));
  const TensorView& x = matrix.view();
  const bool rowwise = suspect.output.starts_with("rowwise");
  const Written written = suspect.output.ends_with("data") ? Written::codes
                          : suspect.output == "scale"      ? Written::scale
                          : suspect.output == "amax"       ? Written::amax
                                                           : Written::scale_inv;
  const bool swizzled = scale_layout_of(suspect.request) == ScaleLayout::swizzled;
  const std::int64_t columns = x.shape.at(1);
  const std::vector<std::int64_t> groups = group_rows(suspect.request, x.shape.at(0));
  const bool per_tensor = is_per_tensor(call->recipe);
  const Direction direction = rowwise || per_tensor ? Direction::rowwise : Direction::columnwise;
  const auto offsets = scale_offsets(call->recipe, direction, groups, columns);
  const TensorView* given = call->recipe == Recipe::tensor_delayed ? &suspect.request.input("scale") : nullptr;
  Tensor made = suspect.want;
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < groups.size(); first_row += groups[t], ++t) {
    quantize({*call, rules, x, rowwise, swizzled, first_row, groups[t], columns, offsets[t],
              scale_shape(call->recipe, direction, groups[t], columns), given == nullptr ? nullptr : floats(given) + t},
             written, made);
  }
  return made;
}

void try_quantize_rules(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted) {
  const auto call = quantize_call_of(suspect);
  if (!call) return;
  for (const NamedRules& named : quantize_rules()) {
    if (!named.applies(*call)) continue;
    if (!effort.spend(suspect.request.input("x").elements() * 4)) return;
    const auto made = quantized_by(named.rules, suspect);
    const Elements words(*made);
    const Weight weight = weigh(sample, [&](std::int64_t at) { return std::optional(words[at]); });
    if (!accepted.add(sample, weight, named.text)) return;
  }
}

}  // namespace assay::conformance::diagnosis
