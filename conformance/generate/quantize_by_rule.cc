#include "conformance/generate/ops.h"

#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/rule_choice.h"
#include "conformance/generate/tensors.h"

namespace assay::conformance::inputs {

void generate_quantize_by_rule(const CaseLine& line, Case& result) {
  const RuleChoice choice = rule_choice(line);
  result.attributes["preset"] = choice.rule->name;
  result.attributes["rule"] = to_text(*choice.rule);
  constexpr const char* kOuter[] = {"none", "tensor", "row"};
  result.attributes["outer"] = std::string(kOuter[static_cast<int>(choice.rule->outer)]);
  result.attributes["scale_type"] = std::string(name_of(choice.rule->scale_type));
  result.attributes["otype"] = std::string(name_of(choice.output));
  result.attributes["block"] = to_text(choice.block);
  result.attributes["storage"] = name_of(choice.storage);
  result.attributes["transposed"] = line.integer("transposed");

  const Rows rows = rows_of(line);
  PatternRequest pattern;
  const std::string data = line.text("data");  // the request holds a view of it
  pattern.pattern = data;
  pattern.type = format_of(line.text("x_type"));
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.tensor = "x";
  pattern.rows = rows.total;
  pattern.columns = choice.rule->matrices_in_x() * line.integer("K");
  pattern.target = bits_of(choice.output) == 6 ? Format::e2m1 : choice.output;
  pattern.block = choice.block.columns > 1 ? choice.block.columns : 128;
  pattern.one_scale = choice.rule->outer != OuterAmax::none;
  pattern.amplitude = 15;
  std::vector<std::uint32_t> bits = pattern_bits(pattern);
  poison_tail(bits, rows.active, pattern.columns, pattern.type);
  Tensor x = make(pattern.type, {rows.total, pattern.columns});
  store(bits, x);
  result.in["x"] = std::move(x);
  if (rows.grouped) result.in["splits"] = integers_tensor(rows.splits, Format::i64, "splits");
  if (line.text("amax") == "given") {
    // Larger than what the tensor or row has, and another from one to the next.
    const bool of_rows = choice.rule->outer == OuterAmax::row;
    const auto count = static_cast<std::size_t>(of_rows ? rows.total : static_cast<std::int64_t>(rows.splits.size()));
    std::vector<double> amaxes(count);
    for (std::size_t i = 0; i < count; ++i) amaxes[i] = 40 + static_cast<double>((i * 7 + pattern.seed) % 23) * 0.375;
    Tensor amax = make(Format::f32, {static_cast<std::int64_t>(count)});
    for (std::size_t i = 0; i < count; ++i) amax.as<float>()[i] = static_cast<float>(amaxes[i]);
    result.in["amax"] = std::move(amax);
  }
}

}  // namespace assay::conformance::inputs
