#include "conformance/generate/ops.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

namespace {

// NaN, infinity, -0, a subnormal and 0 from tensor to tensor, as the newest entry of the history (row 0), the oldest (row 1)
// or one in the middle.
void place_specials(Tensor& history, Tensor* reduced) {
  constexpr std::uint32_t kKinds[] = {0x7fc0'0000, 0x7f80'0000, 0x8000'0000, 0x0000'0123, 0};
  const std::int64_t length = history.shape[0], tensors = history.shape[1];
  for (std::int64_t t = 0; t < tensors; ++t) {
    const std::uint32_t kind = kKinds[t % 5];
    const std::int64_t place = t / 5 % 3, oldest = std::min<std::int64_t>(1, length - 1),
                       middle = std::min(1 + (length - 1) / 2, length - 1);
    history.as<std::uint32_t>()[(place == 0 ? 0 : place == 1 ? oldest : middle) * tensors + t] = kind;
    if (reduced != nullptr && place == 0) reduced->as<std::uint32_t>()[t] = kind;
  }
}

}  // namespace

void generate_delayed_update(const CaseLine& line, Case& result) {
  result.attributes["algorithm"] = line.text("algorithm");
  result.attributes["bulk"] = line.integer("bulk");
  result.attributes["otype"] = line.text("otype");
  result.attributes["margin"] = line.integer("margin");
  const std::string data = line.text("data");
  PatternRequest pattern;
  const std::string drawn = data == "every_special" ? "uniform" : data;
  pattern.pattern = drawn;
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
  if (data == "every_special")
    place_specials(result.in["amax_history"], line.integer("reduced") == 1 ? &result.in["reduced"] : nullptr);
  result.in["scale"] =
      group_floats({.kind = scale_kind_of(line.text("scales")), .seed = pattern.seed, .tensor = "scale", .centre = 6},
                   static_cast<std::size_t>(pattern.columns));
}

}  // namespace assay::conformance::inputs
