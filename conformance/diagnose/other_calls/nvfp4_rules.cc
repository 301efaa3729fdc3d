#include "conformance/diagnose/other_calls/nvfp4_rules.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/words.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e4m3.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/four_over_six.h"
#include "reference/recipes/hadamard.h"
#include "reference/recipes/nvfp4.h"
#include "reference/recipes/stochastic_rounding.h"

namespace assay::conformance::diagnosis {
namespace {

constexpr std::int64_t kBlock = 16;

// ---- Rules ----------------------------------------------------------------------------------------------------------

float cut_to_power(float scale) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xff800000u); }
float no_scale(float) { return 1; }

float ratio_of(float amax, float tensor_scale) {
  return std::fmin(amax * (tensor_scale * std::bit_cast<float>(0x3e2a'aaabu)), FLT_MAX);
}
std::uint8_t scale_toward_zero(float amax, float tensor_scale) {
  const float ratio = ratio_of(amax, tensor_scale);
  const std::uint8_t code = scalar::encode_e4m3(ratio);
  return scalar::decode_e4m3(code) > ratio ? static_cast<std::uint8_t>(code - 1) : code;
}
std::uint8_t scale_up(float amax, float tensor_scale) {
  const float ratio = ratio_of(amax, tensor_scale);
  const std::uint8_t code = scalar::encode_e4m3(ratio);
  return code < 0x7e && scalar::decode_e4m3(code) < ratio ? static_cast<std::uint8_t>(code + 1) : code;
}
std::uint8_t scale_by_division(float amax, float tensor_scale) {
  return scalar::encode_e4m3(std::fmin(amax * (tensor_scale / 6), FLT_MAX));
}
std::uint8_t scale_above_zero(float amax, float tensor_scale) {
  return std::max<std::uint8_t>(scalar::encode_e4m3(ratio_of(amax, tensor_scale)), 1);
}
std::uint8_t without_tensor_scale(float amax, float) { return scalar::encode_e4m3(amax / 6); }

float tensor_scale_first(float x, std::uint8_t block_scale, float tensor_scale) {
  return x * tensor_scale / scalar::decode_e4m3(block_scale);
}
float divided(float x, std::uint8_t block_scale, float tensor_scale) {
  return x / (scalar::decode_e4m3(block_scale) * (1 / tensor_scale));
}

std::uint8_t toward_zero(float product) {
  const std::uint8_t code = scalar::encode_e2m1(product);
  const bool above = std::fabs(scalar::decode_e2m1(code)) > std::fabs(product);
  return above ? static_cast<std::uint8_t>(code - 1) : code;
}
std::uint8_t ties_away(float product) {
  const std::uint8_t low = toward_zero(product);
  if (!std::isfinite(product) || (low & 7) == 7) return scalar::encode_e2m1(product);
  const float below = std::fabs(scalar::decode_e2m1(low)),
              above = std::fabs(scalar::decode_e2m1(static_cast<std::uint8_t>(low + 1)));
  return std::fabs(product) - below >= above - std::fabs(product) ? static_cast<std::uint8_t>(low + 1) : low;
}
std::uint8_t nan_as_zero(float product) { return std::isnan(product) ? 0 : scalar::encode_e2m1(product); }

bool always(const QuantizeConfig&) { return true; }
bool nearest(const QuantizeConfig& config) { return !config.stochastic_rounding; }
bool one_choice(const QuantizeConfig& config) { return config.four_over_six == FourOverSix::off; }
bool two_choices(const QuantizeConfig& config) { return !one_choice(config); }
bool transforms(const QuantizeConfig& config) { return config.hadamard; }
bool stochastic(const QuantizeConfig& config) { return config.stochastic_rounding; }

constexpr NamedNvfp4Rules kNvfp4Rules[] = {
    {"with codes rounded toward zero", nearest, {.code = toward_zero}},
    {"with ties of codes rounded away from zero", nearest, {.code = ties_away}},
    {"with NaN stored as 0", nearest, {.code = nan_as_zero}},
    {"with x divided by the block's scale over the tensor's, not multiplied", always, {.product = divided}},
    {"with x multiplied by the tensor's scale first, then divided by the block's", always, {.product = tensor_scale_first}},
    {"with block scales rounded toward zero", one_choice, {.block_scale = scale_toward_zero}},
    {"with block scales rounded up", one_choice, {.block_scale = scale_up}},
    {"with block scales without the tensor's scale", one_choice, {.block_scale = without_tensor_scale}},
    {"with the tensor's scale cut to a power of two", always, {.tensor_scale = cut_to_power}},
    {"with the tensor's scale taken as 1", always, {.tensor_scale = no_scale}},
    {"with the scale for 4 always", two_choices, {.four_or_six = FourOrSix::four}},
    {"with the scale for 6 always", two_choices, {.four_or_six = FourOrSix::six}},
    {"with the scale for 4 where both errors are equal", two_choices, {.four_or_six = FourOrSix::four_where_equal}},
    {"with the amax of x for that of the transformed columns", transforms, {.amax_before_transform = true}},
    {"with the transform along the rows, not down the columns", transforms, {.transform_along_rows = true}},
    {"with random bytes in the order of x, not of the codes", stochastic, {.random_in_order_of_x = true}},
    {"with block scales by division by 6, not by RN(1/6)", one_choice, {.block_scale = scale_by_division}},
    {"with a block scale of 0 stored as the smallest E4M3 value", one_choice, {.block_scale = scale_above_zero}},
    {"with codes by block scales before they are rounded to E4M3", one_choice, {.codes_by_exact_scale = true}},
    {"with the tensor's scale of 6 * 256, not 6 * 448", always, {.largest = 256}},
    {"with the tensor's scale of 6 * 448, not 6 * 256", two_choices, {.largest = 448}},
    {"with the amax of the whole tensor for every group", always, {.amax_from = AmaxFrom::tensor}},
    {"with the amax of the group before", always, {.amax_from = AmaxFrom::group_before}},
    {"with the amax of the first group for all", always, {.amax_from = AmaxFrom::first_group}},
    {"with scales of the block before", always, {.other = {-1, 0, true, true}}},
    {"with scales of the block after", always, {.other = {1, 0, true, true}}},
    {"with codes by scales of the block before", always, {.other = {-1, 0, true, false}}},
    {"with codes by scales of the block after", always, {.other = {1, 0, true, false}}},
    {"with scale_inv of the block before", always, {.other = {-1, 0, false, true}}},
    {"with scale_inv of the block after", always, {.other = {1, 0, false, true}}},
    {"with scales of the line before", always, {.other = {0, -1, true, true}}},
    {"with scales of the line after", always, {.other = {0, 1, true, true}}},
    {"with codes by scales of the line before", always, {.other = {0, -1, true, false}}},
    {"with codes by scales of the line after", always, {.other = {0, 1, true, false}}},
    {"with scale_inv of the line before", always, {.other = {0, -1, false, true}}},
    {"with scale_inv of the line after", always, {.other = {0, 1, false, true}}},
};

// ---- One direction of one group ---------------------------------------------------------------------------------------

// The stored matrix: lines along which blocks run. Rowwise the group itself, columnwise its transpose.
struct Part {
  const QuantizeConfig& config;
  const Nvfp4Rules& rules;
  std::int64_t lines, length;
  std::vector<float> values;  // [lines, length]
  float amax = 0, tensor_scale = 1;
  float at(std::int64_t line, std::int64_t i) const { return values[static_cast<std::size_t>(line * length + i)]; }
};

// Rows [first_row, first_row + rows) of x as the direction takes them.
std::vector<float> values_of(const QuantizeConfig& config, const Nvfp4Rules& rules, const TensorView& x, std::int64_t first_row,
                             std::int64_t rows, bool rowwise) {
  const std::int64_t columns = x.shape.at(1);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  const auto place = [&](std::int64_t r, std::int64_t c) -> float& {
    return values[static_cast<std::size_t>(rowwise ? r * columns + c : c * rows + r)];
  };
  if (rowwise || !config.hadamard) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) place(r, c) = scalar::load(x.type, x.data, (first_row + r) * columns + c);
    }
    return values;
  }
  const auto* codes = static_cast<const std::uint16_t*>(x.data) + first_row * columns;
  const bool along = rules.transform_along_rows;
  const std::int64_t outer = along ? rows : columns, inner = along ? columns : rows;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t first = 0; first < inner; first += kBlock) {
      std::vector<std::uint16_t> block;
      for (std::int64_t i = first; i < std::min(inner, first + kBlock); ++i)
        block.push_back(codes[along ? o * columns + i : i * columns + o]);
      const auto y = scalar::hadamard_transform(config.hadamard_sign_mask, block);
      for (std::size_t i = 0; i < block.size(); ++i) {
        const std::int64_t n = first + static_cast<std::int64_t>(i);
        place(along ? o : n, along ? n : o) = scalar::decode_bf16(y[i]);
      }
    }
  }
  return values;
}

float amax_of(const std::vector<float>& values) {
  float amax = 0;
  for (const float each : values) amax = scalar::accumulate_absmax(amax, each);
  return amax;
}

// The error of a line of a block under a scale, in order (four_over_six.h).
float line_error(const Part& part, std::int64_t line, std::int64_t first, std::int64_t end, std::uint8_t scale) {
  const float multiplier = scalar::nvfp4_multiplier(scale, part.tensor_scale);
  float sum = 0;
  for (std::int64_t i = first; i < end; ++i) {
    const float code = scalar::decode_e2m1(scalar::encode_e2m1(part.at(line, i) * multiplier));
    const float back = code * scalar::decode_e4m3(scale) * part.amax / (6 * part.config.nvfp4_e4m3_max);
    const float off = back - part.at(line, i);
    sum = sum + (part.config.four_over_six == FourOverSix::mean_squared_error ? off * off : std::fabs(off));
  }
  return sum;
}

float tile_error(const Part& part, std::int64_t line, std::int64_t line_end, std::int64_t first, std::int64_t end,
                 std::uint8_t scale) {
  std::array<float, 16> errors = {};
  for (std::int64_t l = line; l < line_end; ++l)
    errors[static_cast<std::size_t>(l - line)] = line_error(part, l, first, end, scale);
  if (!part.config.two_dimensional) return errors[0];
  for (const std::size_t distance : {8u, 4u, 2u, 1u}) {
    for (std::size_t l = 0; l < distance; ++l) errors[l] = errors[l] + errors[l + distance];
  }
  return errors[0];
}

float amax_of(const Part& part, std::int64_t line, std::int64_t line_end, std::int64_t first, std::int64_t end) {
  float amax = 0;
  for (std::int64_t l = line; l < line_end; ++l) {
    for (std::int64_t i = first; i < end; ++i) amax = scalar::accumulate_absmax(amax, part.at(l, i));
  }
  return amax;
}

std::uint8_t scale_of(const Part& part, std::int64_t line, std::int64_t line_end, std::int64_t first, std::int64_t end) {
  const float amax = amax_of(part, line, line_end, first, end);
  if (part.config.four_over_six == FourOverSix::off) {
    return (part.rules.block_scale != nullptr ? part.rules.block_scale : scalar::nvfp4_block_scale)(amax, part.tensor_scale);
  }
  const float base = amax / 6.0f * part.tensor_scale;
  const std::uint8_t four = scalar::encode_e4m3(std::fmin(base * 1.5f, kFourOverSixLargest));
  const std::uint8_t six = scalar::encode_e4m3(std::fmin(base, kFourOverSixLargest));
  if (part.rules.four_or_six == FourOrSix::four) return four;
  if (part.rules.four_or_six == FourOrSix::six) return six;
  const float of_four = tile_error(part, line, line_end, first, end, four),
              of_six = tile_error(part, line, line_end, first, end, six);
  return of_four < of_six || (of_four == of_six && part.rules.four_or_six == FourOrSix::four_where_equal) ? four : six;
}

std::uint8_t element_code(const Part& part, float x, std::uint8_t scale, float exact, const std::uint8_t* random) {
  float multiplier = scalar::nvfp4_multiplier(scale, part.tensor_scale);
  if (part.rules.codes_by_exact_scale) multiplier = std::fmin(1 / (exact * (1 / part.tensor_scale)), FLT_MAX);
  const float given = part.config.zero_sign == ZeroSign::positive && x == 0 ? 0.0f : x;
  const float product = part.rules.product != nullptr ? part.rules.product(given, scale, part.tensor_scale) : given * multiplier;
  if (random != nullptr) return scalar::stochastic_e2m1(product, *random);
  return part.rules.code != nullptr ? part.rules.code(product) : scalar::encode_e2m1(product);
}

void put_code(Tensor& to, std::int64_t at, std::uint8_t code) {
  std::uint8_t& byte = to.as<std::uint8_t>()[at / 2];
  byte = static_cast<std::uint8_t>(at % 2 == 0 ? (byte & 0xf0) | code : (byte & 0x0f) | code << 4);
}

}  // namespace

std::span<const NamedNvfp4Rules> nvfp4_rules() { return kNvfp4Rules; }

std::optional<Tensor> quantized_nvfp4_by(const Nvfp4Rules& rules, const Suspect& suspect) {
  const Request& request = suspect.request;
  const bool to_data = suspect.output.ends_with("_data"), to_amax = suspect.output.ends_with("amax");
  if (request.op() != "quantize" || !(to_data || to_amax || suspect.output.ends_with("_scale_inv"))) return std::nullopt;
  if (request.text_or("draws", "given") != "given") return std::nullopt;  // its bytes are not at hand
  const QuantizeConfig config = quantize_config_of(request);
  if (config.recipe != Recipe::nvfp4) return std::nullopt;
  const bool rowwise = !suspect.output.starts_with("column"), swizzled = config.scale_layout == ScaleLayout::swizzled;
  const TensorView& x = request.input("x");
  const std::int64_t columns = x.shape.at(1);
  const std::vector<std::int64_t> groups = group_rows(request, x.shape.at(0));
  const Direction direction = rowwise ? Direction::rowwise : Direction::columnwise;
  const auto offsets = scale_offsets(Recipe::nvfp4, direction, groups, columns);
  const TensorView* given = rowwise ? request.find_input("amax") : request.find_input("columnwise_amax");
  if (given == nullptr && !rowwise && !config.hadamard) given = request.find_input("amax");
  const TensorView* random =
      config.stochastic_rounding ? request.find_input(rowwise ? "rowwise_random" : "columnwise_random") : nullptr;
  Tensor made = suspect.want;
  std::int64_t first_row = 0;
  for (std::size_t t = 0; t < groups.size(); first_row += groups[t], ++t) {
    const std::int64_t rows = groups[t], base = first_row * columns;
    Part part{config, rules, rowwise ? rows : columns, rowwise ? columns : rows,
              values_of(config, rules, x, first_row, rows, rowwise)};
    part.amax = given != nullptr              ? floats(given)[given->elements() == 1 ? 0 : t]
                : rules.amax_before_transform ? amax_of(values_of(config, rules, x, first_row, rows, true))
                                              : amax_of(part.values);
    if (rules.amax_from != AmaxFrom::own && given == nullptr) {
      const auto of_group = [&](std::size_t group) {
        const std::int64_t before =
            std::accumulate(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(group), std::int64_t{0});
        return amax_of(values_of(config, rules, x, before, groups[group], rowwise));
      };
      if (rules.amax_from == AmaxFrom::tensor) {
        for (std::size_t group = 0; group < groups.size(); ++group) part.amax = std::max(part.amax, of_group(group));
      } else {
        part.amax = of_group(rules.amax_from == AmaxFrom::first_group || t == 0 ? 0 : t - 1);
      }
    }
    part.tensor_scale = scalar::nvfp4_tensor_scale(part.amax, rules.largest != 0 ? rules.largest : config.nvfp4_e4m3_max);
    if (rules.tensor_scale != nullptr) part.tensor_scale = rules.tensor_scale(part.tensor_scale);
    if (to_amax) {
      made.as<float>()[t] = part.amax;
      continue;
    }
    const ScaleShape shape = scale_shape(Recipe::nvfp4, direction, rows, columns);
    // The block that begins at `first` of a line, and its scale.
    const auto scale_at = [&](std::int64_t line, std::int64_t first) {
      const std::int64_t end = std::min(first + kBlock, part.length),
                         tile = config.two_dimensional ? line / kBlock * kBlock : line;
      const std::int64_t tile_end = config.two_dimensional ? std::min(tile + kBlock, part.lines) : line + 1;
      return scale_of(part, tile, tile_end, first, end);
    };
    const OtherBlock& other = rules.other;
    const bool moves = other.blocks != 0 || other.lines != 0;
    for (std::int64_t line = 0; line < part.lines; ++line) {
      for (std::int64_t first = 0; first < part.length; first += kBlock) {
        const std::int64_t end = std::min(first + kBlock, part.length);
        std::int64_t from_line = line, from = first;
        if (moves && (to_data ? other.for_codes : other.for_storage)) {
          from_line = std::clamp<std::int64_t>(line + other.lines, 0, part.lines - 1);
          from = std::clamp<std::int64_t>(first / kBlock + other.blocks, 0, (part.length - 1) / kBlock) * kBlock;
        }
        const std::uint8_t scale = scale_at(from_line, from);
        const float exact =
            rules.codes_by_exact_scale ? ratio_of(amax_of(part, line, line + 1, first, end), part.tensor_scale) : 0;
        const std::int64_t block = first / kBlock;
        if (!to_data) {
          const std::int64_t at = swizzled ? swizzled_index(line, block, shape.columns / 4) : line * shape.columns + block;
          made.as<std::uint8_t>()[offsets[t] + at] = scale;
          continue;
        }
        for (std::int64_t i = first; i < end; ++i) {
          const std::int64_t at = line * part.length + i,
                             byte = rules.random_in_order_of_x && !rowwise ? i * part.lines + line : at;
          const auto* bytes = random == nullptr ? nullptr : static_cast<const std::uint8_t*>(random->data) + base + byte;
          put_code(made, base + at, element_code(part, part.at(line, i), scale, exact, bytes));
        }
      }
    }
  }
  return made;
}

void try_nvfp4_rules(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted) {
  if (suspect.request.op() != "quantize" || quantize_config_of(suspect.request).recipe != Recipe::nvfp4) return;
  const QuantizeConfig config = quantize_config_of(suspect.request);
  for (const NamedNvfp4Rules& named : kNvfp4Rules) {
    if (!named.applies(config)) continue;
    // A 2-D tile is computed once for each of its 16 lines, with two choices 16 codes each time.
    const std::int64_t times = (config.two_dimensional ? 16 : 1) * (two_choices(config) ? 4 : 2);
    if (!effort.spend(suspect.request.input("x").elements() * times)) return;
    const auto made = quantized_nvfp4_by(named.rules, suspect);
    if (!made) return;
    const Elements words(*made);
    const Weight weight = weigh(sample, [&](std::int64_t at) { return std::optional(words[at]); });
    if (!accepted.add(sample, weight, named.text)) return;
  }
}

}  // namespace assay::conformance::diagnosis
