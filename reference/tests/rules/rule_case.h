#pragma once
// A quantization by a rule as a value, with its input drawn from a seed, and its outputs in memory that is poisoned and guarded.

#include <bit>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "reference/formats/encode.h"
#include "reference/rules/quantize_by_rule.h"

namespace assay::rules_suite {

enum class Data { spread, specials, tiny, zeros, bits };

struct Case {
  const ScaleRule* rule = nullptr;
  Format output = Format::e4m3;
  BlockShape block = {};
  ScaleStorage storage = {};
  bool transposed = false;
  Format x_type = Format::bf16;
  std::vector<std::int64_t> splits = {};  // one tensor where `grouped` is false
  bool grouped = true;
  std::int64_t columns = 0, rows_beyond = 0;
  Data data = Data::spread;
  std::uint32_t seed = 1;
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.rule->name << " " << name_of(c.output) << " blocks " << to_text(c.block) << " " << name_of(c.storage)
       << (c.transposed ? " transposed " : " ") << name_of(c.x_type) << " splits";
  for (const std::int64_t rows : c.splits) *out << " " << rows;
  *out << (c.grouped ? "" : " (one tensor)") << " K " << c.columns << " data " << static_cast<int>(c.data) << " seed " << c.seed;
}

// Bits of x in its type.
inline std::vector<std::uint8_t> make_x(const Case& c, std::int64_t rows) {
  std::mt19937 random(c.seed);
  const auto count = static_cast<std::size_t>(rows * c.columns * c.rule->matrices_in_x());
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t draw = random();
    const float sign = draw & 1 ? -1.0f : 1.0f, mantissa = 1 + static_cast<float>(draw >> 9) * 0x1p-23f;
    const auto block = static_cast<int>((i / 40) * 2654435761u >> 27 & 31);
    switch (c.data) {
      case Data::spread: values[i] = sign * mantissa * std::ldexp(1.0f, block - 16); break;
      case Data::specials: {
        const float odd[] = {__builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 0.0f, -0.0f, 0x1.fffffep127f, 448.0f};
        values[i] = draw % 61 == 0 ? odd[draw / 61 % 7] : sign * mantissa;
        break;
      }
      case Data::tiny: values[i] = sign * mantissa * std::ldexp(1.0f, -110 - block); break;
      case Data::zeros: values[i] = draw % 200 == 0 ? mantissa : draw & 1 ? -0.0f : 0.0f; break;
      case Data::bits: values[i] = std::bit_cast<float>(draw); break;
    }
  }
  std::vector<std::uint8_t> bytes(count * static_cast<std::size_t>(bits_of(c.x_type) / 8));
  if (c.x_type == Format::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    std::vector<std::uint16_t> codes(count);
    encode(c.x_type, values, codes);
    std::memcpy(bytes.data(), codes.data(), bytes.size());
  }
  return bytes;
}

struct Outputs {
  std::vector<std::uint8_t> data, scale;
  std::vector<float> outer;
};

enum class Layer { scalar, fast };

inline RuleProblem problem_of(const Case& c) {
  RuleProblem problem;
  problem.rule = c.rule;
  problem.output = c.output;
  problem.block = c.block;
  problem.storage = c.storage;
  problem.transposed = c.transposed;
  problem.x_type = c.x_type;
  problem.rows = c.rows_beyond;
  for (const std::int64_t rows : c.splits) problem.rows += rows;
  problem.columns = c.columns;
  problem.grouped = c.grouped;
  problem.splits = c.splits;
  return problem;
}

// The bytes of all outputs, with what was not written as poison, and 16 bytes of it behind each.
inline Outputs run(const Case& c, Layer layer, std::uint8_t poison, const std::vector<std::uint8_t>& x) {
  RuleProblem problem = problem_of(c);
  problem.x = x.data();
  const RuleShapes shapes = rule_outputs(problem);
  Outputs out;
  out.data.assign(static_cast<std::size_t>(shapes.data_bytes) + 16, poison);
  out.scale.assign(static_cast<std::size_t>(shapes.scale_bytes) + 16, poison);
  out.outer.assign(static_cast<std::size_t>(shapes.outer_amaxes) + 4, -7.0f);
  const RuleOutput output{out.data.data(), out.scale.data(), shapes.outer_amaxes == 0 ? nullptr : out.outer.data()};
  layer == Layer::fast ? quantize_by_rule(problem, output) : scalar::quantize_by_rule(problem, output);
  for (float& value : out.outer) {
    if (std::bit_cast<std::uint32_t>(value) == 0x7FFFFFFF) value = -8;  // the one NaN that is stored equals itself
  }
  return out;
}

}  // namespace assay::rules_suite
