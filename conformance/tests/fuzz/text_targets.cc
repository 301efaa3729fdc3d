// Inputs that are text: case lines, files of cases, plans, units, scale rules, levels, results.

#include <cmath>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/scenario.h"
#include "conformance/catalogue/case_text.h"
#include "conformance/emit/c_source.h"
#include "conformance/emit/exact_case.h"
#include "conformance/generate/generator.h"
#include "conformance/levels/levels.h"
#include "conformance/report/earlier_results.h"
#include "conformance/report/matrix.h"
#include "conformance/tests/fuzz/targets.h"
#include "golden/io/fixture_error.h"
#include "reference/arithmetic/unit_table.h"
#include "reference/gemm/plan.h"
#include "reference/rules/quantize_by_rule.h"
#include "reference/rules/scale_rule.h"
#include "reference/types/error.h"

namespace assay::fuzz {
namespace {

using namespace assay::conformance;

constexpr std::size_t kLines = 40, kLongestLine = 1 << 16;     // of an input
constexpr std::int64_t kProducts = 1 << 18, kBytes = 1 << 14;  // of a case that is answered

std::vector<std::string> lines_of(std::string_view data) {
  std::vector<std::string> lines;
  std::istringstream text{std::string(data)};
  for (std::string line; lines.size() < kLines && std::getline(text, line);) lines.push_back(line);
  return lines;
}

// One line of text, which names something.
void expect_message(const std::exception& error, std::string_view input) {
  const std::string what = error.what();
  promise(!what.empty(), "an error says why", input);
}

void answer_line(const CaseLine& line, std::string_view input) {
  const CaseCost cost = cost_of(line);
  promise(cost.macs >= 0 && cost.elements >= 0, "a cost is not negative", input);
  if (line.op == "scenario" || cost.macs > kProducts || cost.elements > kBytes * 4) return;
  const std::string source =
      c_source(exact_case(line, {.plan = "", .bounds = false, .unit = "", .max_bytes = kBytes}), to_text(line));
  promise(source.ends_with("#endif /* ASSAY_DECLARATIONS_ONLY */\n"), "an emitted file is whole", input);
}

}  // namespace

void run_case_lines(std::string_view data) {
  for (const std::string& text : lines_of(data)) {
    try {
      const CaseLine line = parse_case_line(text);
      const std::string canonical = to_text(line);
      if (canonical.size() > kLongestLine) continue;  // a million groups, which a few words ask for
      const CaseLine again = parse_case_line(canonical);
      promise(again == line && to_text(again) == canonical, "canonical text reads as the same case", text);
      promise(name_of(again) == name_of(line), "a case has one name", text);
      check_kind(line);
      if (find_key(*find_op(line.op), "replay") != nullptr) replay_plan(line);
      if (line.op == "scenario") scenario_of(line);
      if (line.op != "scenario") promise(!wanted_outputs(line).empty(), "a call has an output", text);
      answer_line(line, text);
    } catch (const InvalidArgument& error) {
      expect_message(error, text);
    } catch (const NotSupported& error) {
      expect_message(error, text);
    }
  }
}

void run_case_text(std::string_view data) {
  for (const Marks marks : {Marks::required, Marks::optional}) {
    try {
      const CaseText text = parse_case_text(data, "a.txt", marks);
      std::size_t count = 0;
      for (const auto& section : text.sections) count += section.size();
      promise(count > 0, "a file without cases is refused", data);
    } catch (const CaseTextError& error) {
      expect_message(error, data);
    }
  }
}

void run_plan_lines(std::string_view data) {
  for (const std::string& text : lines_of(data)) {
    try {
      const AccumulationPlan plan = read_plan_line(text);
      const std::string line = plan_line(plan);
      promise(plan_line(read_plan_line(line)) == line, "the line of a plan reads as the same plan", text);
    } catch (const InvalidArgument& error) {
      expect_message(error, text);
    }
  }
}

void run_units(std::string_view data) {
  try {
    for (const TensorCoreUnit& unit : parse_units(data, "a.txt")) {
      const std::string row = to_text(unit);
      const std::vector<TensorCoreUnit> again = parse_units(row, "b.txt");
      promise(again.size() == 1 && to_text(again[0]) == row, "the row of a unit reads as the same unit", data);
    }
  } catch (const InvalidArgument& error) {
    expect_message(error, data);
  }
}

namespace {

// 16 rows of gate and up, or of x, with a zero, a NaN, an infinity and a subnormal in it.
void try_rule(const ScaleRule& rule, std::string_view input) {
  std::vector<float> x(16 * 64 * static_cast<std::size_t>(rule.matrices_in_x()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.125f;
  x[3] = 0, x[70] = NAN, x[200] = INFINITY, x[300] = 1e-40f;
  const std::int64_t splits[] = {5, 11};
  for (const bool transposed : {false, true}) {
    RuleProblem problem;
    problem.rule = &rule;
    problem.output = rule.outputs.front();
    problem.block = rule.blocks.front();
    problem.storage = parse_scale_storage("storage", rule.storage);
    problem.transposed = transposed;
    problem.x = x.data();
    problem.x_type = Format::f32;
    problem.rows = 16;
    problem.columns = 64;
    problem.grouped = true;
    problem.splits = splits;
    try {
      const RuleShapes shapes = rule_outputs(problem);
      promise(shapes.scale_bytes >= 0 && shapes.scale_bytes <= 1 << 20, "a small tensor has few scales", input);
      std::vector<std::uint8_t> codes[2], scales[2];
      std::vector<float> amaxes[2];
      for (const int layer : {0, 1}) {
        codes[layer].resize(16 * 64);
        scales[layer].resize(static_cast<std::size_t>(shapes.scale_bytes));
        amaxes[layer].resize(static_cast<std::size_t>(shapes.outer_amaxes));
        RuleOutput output;
        output.data = codes[layer].data();
        output.scale = scales[layer].data();
        if (rule.outer != OuterAmax::none) output.outer_amax = amaxes[layer].data();
        layer == 0 ? quantize_by_rule(problem, output) : scalar::quantize_by_rule(problem, output);
      }
      promise(codes[0] == codes[1] && scales[0] == scales[1], "the fast layer equals the scalar one", input);
    } catch (const InvalidArgument& error) {
      expect_message(error, input);
    } catch (const NotSupported& error) {
      expect_message(error, input);
    }
  }
}

}  // namespace

void run_presets(std::string_view data) {
  try {
    const std::deque<ScaleRule> rules = parse_scale_rules(data, "a.txt");
    for (const ScaleRule& rule : rules) {
      const std::string row = to_text(rule);
      const std::deque<ScaleRule> again = parse_scale_rules(row, "b.txt");
      promise(again.size() == 1 && to_text(again[0]) == row, "the row of a rule reads as the same rule", data);
      if (rules.size() <= 4) try_rule(rule, data);
    }
  } catch (const InvalidArgument& error) {
    expect_message(error, data);
  }
}

void run_level(std::string_view data) {
  static const std::vector<std::string> texts{"quantize recipe=mxfp8 R=33 K=64"}, names{"quantize/mxfp8/bf16-e4m3/x"};
  try {
    const Level level = parse_level(std::string(data), "a.txt");
    promise(!level.selections.empty() || !level.fixtures.empty(), "a level without cases is refused", data);
    required_by(level, texts, names);
    level.title();
  } catch (const golden::FixtureError& error) {
    expect_message(error, data);
  }
}

void run_results(std::string_view data) {
  const InputFile file(data);
  try {
    const Matrix matrix = collect_matrix({file.path()});
    promise(!matrix_html(matrix).empty() && !matrix_markdown(matrix).empty(), "a page is not empty", data);
  } catch (const golden::FixtureError& error) {
    expect_message(error, data);
  }
  try {
    read_results(file.path());
  } catch (const golden::FixtureError& error) {
    expect_message(error, data);
  }
}

}  // namespace assay::fuzz
