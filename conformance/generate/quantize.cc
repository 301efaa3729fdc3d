#include "conformance/generate/ops.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/compose.h"
#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"
#include "conformance/support/counter_random.h"

namespace assay::conformance::inputs {
namespace {

std::int64_t block_of(Recipe recipe) { return recipe == Recipe::mxfp8 ? 32 : recipe == Recipe::nvfp4 ? 16 : 128; }

// Twice the largest magnitude of each group, as f32.
Tensor doubled_amax(const std::vector<std::uint32_t>& bits, Format type, const Rows& rows, std::int64_t columns) {
  const FormatFields f = fields_of(type);
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(rows.splits.size())});
  std::int64_t base = 0;
  for (std::size_t g = 0; g < rows.splits.size(); ++g) {
    std::uint32_t largest = 0;  // magnitudes sort as their codes do
    for (std::int64_t i = 0; i < rows.splits[g] * columns; ++i) {
      const std::uint32_t magnitude = bits[static_cast<std::size_t>(base + i)] & (sign_bit(f) - 1);
      if (magnitude <= f.infinity) largest = std::max(largest, magnitude);
    }
    base += rows.splits[g] * columns;
    const std::uint32_t field = largest >> f.mantissa, mantissa = largest & ((1u << f.mantissa) - 1);
    const std::uint32_t significand = field == 0 ? mantissa : mantissa | 1u << f.mantissa;
    const int exponent = static_cast<int>(std::max(field, 1u)) - f.bias - f.mantissa;
    tensor.as<std::uint32_t>()[g] =
        largest == f.infinity ? 0x7f80'0000 : compose(fields_of(Format::f32), false, significand, exponent + 1);
  }
  return tensor;
}

// Amaxes that no tensor of such values has, from group to group: a quarter of the largest value, 0, infinity, the smallest
// subnormal, 2^60, NaN.
Tensor misfit_amax(Tensor doubled, std::uint64_t seed) {
  for (std::int64_t g = 0; g < doubled.elements(); ++g) {
    std::uint32_t& bits = doubled.as<std::uint32_t>()[g];
    switch ((static_cast<std::uint64_t>(g) + seed) % 6) {
      case 0: bits = bits >= 0x7f80'0000 || bits < 0x0280'0000 ? 0x3e80'0000 : bits - (3u << 23); break;
      case 1: bits = 0; break;
      case 2: bits = 0x7f80'0000; break;
      case 3: bits = 1; break;
      case 4: bits = 0x5d80'0000; break;
      default: bits = 0x7fc0'0000; break;
    }
  }
  return doubled;
}

// Eight times the largest value for twice: far enough that another scale is stored.
Tensor columnwise_of(Tensor doubled) {
  for (std::int64_t g = 0; g < doubled.elements(); ++g) {
    std::uint32_t& bits = doubled.as<std::uint32_t>()[g];
    if (bits >= 0x0080'0000 && bits < 0x7e80'0000) bits += 2u << 23;
  }
  return doubled;
}

// The largest of all groups, for all of them.
Tensor single(const Tensor& amaxes) {
  Tensor one = make(Format::f32, {1});
  for (std::int64_t g = 0; g < amaxes.elements(); ++g) {
    one.as<std::uint32_t>()[0] = std::max(one.as<std::uint32_t>()[0], amaxes.as<std::uint32_t>()[g]);
  }
  return one;
}

// The amaxes of the line.
void give_amaxes(const CaseLine& line, const Tensor& doubled, Case& result) {
  const std::string amax = line.text("amax");
  if (amax == "given" || amax == "apart") result.in["amax"] = doubled;
  if (amax == "misfit") result.in["amax"] = misfit_amax(doubled, static_cast<std::uint64_t>(line.integer("seed")));
  if (amax == "apart") result.in["columnwise_amax"] = columnwise_of(doubled);
  if (amax == "single") {
    result.in["amax"] = single(doubled);
    result.in["columnwise_amax"] = columnwise_of(single(doubled));
  }
}

// Plain bytes. No format means "a byte", so the tensor has type e8m0.
Tensor random_bytes(std::uint64_t seed, const std::string& name, std::vector<std::int64_t> shape) {
  Tensor tensor = make(Format::e8m0, std::move(shape));
  const CounterRandom random(seed, name);
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(random.words(i / 16)[i / 4 % 4] >> (i % 4 * 8));
  }
  return tensor;
}

// The state of each group: seeds of 64 bits, and offsets that are no multiples of 4 in most groups.
//   plain      about a thousand blocks lie between groups, as where a framework counts what its calls may take
//   carries    the lowest word of the counter passes 2^32 within the draws of one thread
//   last       both lower words do: the counter of a thread runs on into that of the next
Tensor rng_state(const CaseLine& line, std::size_t groups) {
  const CounterRandom random(static_cast<std::uint64_t>(line.integer("seed")), "rng_state");
  const std::string kind = line.text("rng_state");
  Tensor tensor = make(Format::i64, {static_cast<std::int64_t>(groups), 2});
  for (std::size_t g = 0; g < groups; ++g) {
    const Words words = random.words(g);
    const std::uint64_t high = kind == "plain" ? 0 : std::uint64_t{words[2]} << 32;
    const std::uint64_t offset = kind == "plain"     ? 1027 * g + words[3] % 4
                                 : kind == "carries" ? high + 0xFFFF'FFFFu - g % 4
                                                     : ~std::uint64_t{g % 4};
    tensor.as<std::uint64_t>()[2 * g] = std::uint64_t{words[1]} << 32 | words[0];
    tensor.as<std::uint64_t>()[2 * g + 1] = offset;
  }
  return tensor;
}

}  // namespace

void generate_quantize(const CaseLine& line, Case& result) {
  const Recipe recipe = recipe_of(line);
  const bool per_tensor = is_per_tensor(recipe);
  const bool fp8_scaled = per_tensor || recipe == Recipe::block_1x128 || recipe == Recipe::block_128x128;
  auto& attributes = result.attributes;
  attributes["recipe"] = line.text("recipe");
  attributes["otype"] = line.text("otype");
  if (fp8_scaled) {
    attributes["pow2"] = line.integer("pow2");
    attributes["eps"] = line.real("eps");
  } else {
    attributes["scale_layout"] = line.text("scale_layout");
  }
  // Not in schema 1, so only where they differ from the default.
  for (const std::string_view key : {"two_dimensional", "hadamard", "stochastic", "dbias"}) {
    if (line.integer(key) != 0) attributes[std::string(key)] = line.integer(key);
  }
  if (line.integer("hadamard") == 1) attributes["sign_mask"] = line.integer("sign_mask");
  if (line.text("four_over_six") != "off") attributes["four_over_six"] = line.text("four_over_six");
  if (line.integer("e4m3_max") != 448) attributes["e4m3_max"] = line.integer("e4m3_max");
  if (line.text("zero_sign") != "kept") attributes["zero_sign"] = line.text("zero_sign");
  const Activation activation = activation_named(line.text("activation")).value();
  if (activation != Activation::off) attributes["activation"] = line.text("activation");

  const Rows rows = rows_of(line);
  const std::int64_t columns = matrices_in_x(activation) * line.integer("K");
  const auto seed = static_cast<std::uint64_t>(line.integer("seed"));
  PatternRequest pattern;
  const std::string name = line.text("data");
  pattern.pattern = name;
  pattern.type = format_of(line.text("x_type"));
  pattern.seed = seed;
  pattern.tensor = "x";
  pattern.rows = rows.total;
  pattern.columns = columns;
  pattern.target = format_of(line.text("otype"));
  pattern.block = block_of(recipe);
  pattern.one_scale = per_tensor || recipe == Recipe::nvfp4;
  pattern.eps = static_cast<float>(line.real("eps"));
  pattern.e4m3_max = static_cast<int>(line.integer("e4m3_max"));
  pattern.amplitude = 15;
  std::vector<std::uint32_t> bits = pattern_bits(pattern);
  poison_tail(bits, rows.active, columns, pattern.type);
  if (line.text("amax") != "own") give_amaxes(line, doubled_amax(bits, pattern.type, rows, columns), result);
  Tensor x = make(pattern.type, {rows.total, columns});
  store(bits, x);
  result.in["x"] = std::move(x);

  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  if (recipe == Recipe::tensor_delayed) {
    result.in["scale"] = group_floats({.kind = scale_kind_of(line.text("scales")),
                                       .seed = seed,
                                       .tensor = "scale",
                                       .centre = 6,
                                       .tie_bits = pattern.target == Format::e4m3 ? 5 : 4},
                                      rows.splits.size());
  }
  if (line.has("noop")) result.in["noop"] = floats_tensor({line.real("noop")});
  if (line.integer("stochastic") == 1) {
    const std::string direction = line.text("direction");
    if (line.text("draws") != "given") {
      attributes["draws"] = line.text("draws");
      attributes["direction"] = direction;
      result.in["rng_state"] = rng_state(line, rows.splits.size());
      return;
    }
    if (direction != "columnwise") result.in["rowwise_random"] = random_bytes(seed, "rowwise_random", {rows.total * columns});
    if (direction != "rowwise") result.in["columnwise_random"] = random_bytes(seed, "columnwise_random", {rows.total * columns});
  }
}

}  // namespace assay::conformance::inputs
