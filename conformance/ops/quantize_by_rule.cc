// Op `quantize_by_rule`: quantization by a scale rule that the request states in full (spec scale-rules-1.2).

#include <map>
#include <memory>
#include <mutex>

#include "conformance/ops/op.h"
#include "conformance/ops/quantize_input.h"
#include "conformance/ops/rule_request.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// The rule of a row of text. Rows are compiled once.
const ScaleRule& rule_of_row(const std::string& row) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const ScaleRule>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const ScaleRule>& rule = known[row];
  if (rule == nullptr) {
    std::deque<ScaleRule> rules;
    try {
      rules = parse_scale_rules(row, "attribute rule");
      require(rules.size() == 1, "attribute rule", rules.size(), "one row of text");
    } catch (...) {
      known.erase(row);
      throw;
    }
    rule = std::make_unique<const ScaleRule>(std::move(rules.front()));
  }
  return *rule;
}

// The row of the request, or the preset with the name that it states.
const ScaleRule& rule_of(const Request& request) {
  const std::string row = request.text_or("rule", "");
  if (!row.empty()) return rule_of_row(row);
  const std::string name = request.text("preset");
  const ScaleRule* rule = find_scale_rule(name);
  if (rule == nullptr) {
    throw InvalidArgument("attribute preset", "'" + name + "'",
                          "a name that `assay list --presets` prints, or a row in attribute rule");
  }
  return *rule;
}

struct Parsed {
  std::vector<std::int64_t> splits;
  RuleProblem problem;
};

void parse(const Request& request, Parsed& parsed) {
  RuleProblem& problem = parsed.problem;
  problem = rule_problem_of(request);
  request.text_or("preset", "");      // a name for people where the row is given
  request.text_or("scale_type", "");  // these two repeat what the row says
  request.text_or("outer", "");
  read_x_and_splits(request, problem, parsed.splits);
  problem.columns = code_columns(*problem.rule, request.input("x"));
  const RuleShapes shapes = rule_outputs(problem);
  require_amax_of(*problem.rule, request);
  if (request.find_input("amax", Format::f32) != nullptr) {
    problem.outer_amax = static_cast<const float*>(request.input("amax", Format::f32, shapes.outer_amaxes).data);
  }
  request.refuse_unknown();
}

OutputSpec data_spec(const RuleProblem& problem) {
  const int bits = bits_of(problem.output);
  // Four codes of FP6 in three bytes have no type of their own: plain bytes.
  const Format type = bits == 6 ? Format::e8m0 : problem.output;
  const auto stored = [&](std::int64_t codes) { return bits == 8 ? codes : bits == 4 ? codes / 2 : codes * 3 / 4; };
  if (problem.transposed) return {"data", type, {stored(problem.rows * problem.columns)}};
  return {"data", type, {problem.rows, stored(problem.columns)}};
}

std::vector<OutputSpec> outputs(const Request& request) {
  Parsed parsed;
  parse(request, parsed);
  const RuleShapes shapes = rule_outputs(parsed.problem);
  const Format scale_type = parsed.problem.rule->scale_type;
  std::vector<OutputSpec> specs{data_spec(parsed.problem),
                                {"scale_inv", scale_type, {shapes.scale_bytes / bytes_of(scale_type, 1)}}};
  if (parsed.problem.rule->outer != OuterAmax::none) specs.push_back({"amax", Format::f32, {shapes.outer_amaxes}});
  return specs;
}

void write_outputs(const Request& request, Layer layer) {
  Parsed parsed;
  parse(request, parsed);
  const RuleShapes shapes = rule_outputs(parsed.problem);
  const OutputSpec data = data_spec(parsed.problem);
  const Format scale_type = parsed.problem.rule->scale_type;
  std::int64_t elements = 1;
  for (const std::int64_t extent : data.shape) elements *= extent;
  RuleOutput output;
  output.data = request.output("data", data.type, elements);
  output.scale = request.output("scale_inv", scale_type, shapes.scale_bytes / bytes_of(scale_type, 1));
  if (parsed.problem.rule->outer != OuterAmax::none) {
    output.outer_amax = static_cast<float*>(request.output("amax", Format::f32, shapes.outer_amaxes));
  }
  layer == Layer::fast ? quantize_by_rule(parsed.problem, output) : scalar::quantize_by_rule(parsed.problem, output);
}

}  // namespace

RuleProblem rule_problem_of(const Request& request) {
  RuleProblem problem;
  problem.rule = &rule_of(request);
  problem.output = request.format_or("otype", problem.rule->outputs.front());
  problem.block = parse_block_shape("attribute block", request.text_or("block", to_text(problem.rule->blocks.front())));
  problem.storage = parse_scale_storage("attribute storage", request.text_or("storage", problem.rule->storage));
  problem.transposed = request.flag("transposed");
  return problem;
}

std::int64_t code_columns(const ScaleRule& rule, const TensorView& x) {
  require(x.shape.size() == 2, "in/x", describe(x), "a matrix [R,K]");
  require(x.shape[1] % rule.matrices_in_x() == 0, "in/x", describe(x), "as many columns for gate as for up");
  return x.shape[1] / rule.matrices_in_x();
}

void require_amax_of(const ScaleRule& rule, const Request& request) {
  require(rule.outer != OuterAmax::none || request.in.count("amax") == 0, "in/amax", "given",
          "no amax: the rule has none of the tensor or row");
}

const Op kQuantizeByRule{"quantize_by_rule", outputs, write_outputs};

}  // namespace assay::conformance
