#include "conformance/cases/generator_ops.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/generator_scales.h"
#include "conformance/cases/generator_tensors.h"

namespace assay::conformance::inputs {

void generate_delayed_update(const CaseLine& line, Case& result) {
  result.attributes["algorithm"] = line.text("algorithm");
  result.attributes["bulk"] = line.integer("bulk");
  result.attributes["otype"] = line.text("otype");
  result.attributes["margin"] = line.integer("margin");
  const std::string data = line.text("data");
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = Format::f32;
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.target = format_of(line.text("otype"));
  pattern.block = 8;
  pattern.columns = line.integer("tensors");
  // Magnitudes: the history holds amaxes.
  const auto amaxes = [&](std::string name, std::int64_t rows) {
    pattern.tensor = name;
    pattern.rows = rows;
    std::vector<std::uint32_t> bits = pattern_bits(pattern);
    for (std::uint32_t& each : bits) each &= 0x7fff'ffff;
    Tensor tensor = make(Format::f32, {rows, pattern.columns});
    store(bits, tensor);
    return tensor;
  };
  result.in["amax_history"] = amaxes("amax_history", line.integer("length"));
  if (line.integer("reduced") == 1) {
    result.in["reduced"] = amaxes("reduced", 1);
    result.in["reduced"].shape = {pattern.columns};
  }
  result.in["scale"] = group_floats({.kind = ScaleKind::plain, .seed = pattern.seed, .tensor = "scale", .centre = 6},
                                    static_cast<std::size_t>(pattern.columns));
}

}  // namespace assay::conformance::inputs
