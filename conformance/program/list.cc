// assay list: what there is to run, and the words for it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/catalogue.h"
#include "conformance/cases/generator.h"
#include "conformance/program/judge_options.h"
#include "conformance/program/report.h"
#include "conformance/program/verbs.h"
#include "conformance/run/trial.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string profile = "standard";
  std::string op;
  std::string json;
  BackendChoice backend;
  std::string algorithms_of;
  bool axes = false;
  bool backends = false, plans = false, units = false, schema = false, names = false;
};

const char* how_known(bool measured) { return measured ? "measured by us" : "not measured by us"; }

void list_units() {
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    fmt::print("{:<28} {:<40} L={:<3} F={:<3} {}\n  {}\n", unit.name, unit.instruction, unit.products_per_step, unit.fraction_bits,
               how_known(unit.measured_by_us), unit.evidence);
  }
}

void list_plans() {
  for (const AccumulationPlan& plan : accumulation_plans()) fmt::print("{:<48} {}\n", plan.name, plan.unit);
}

ExitCode list_algorithms(const Options& options) {
  const CaseLine line = parse_case_line(options.algorithms_of);
  const golden::Case problem = generate(line);
  golden::Case copy = problem;
  std::vector<OutputSpec> outputs = outputs_of(Request::of(copy));
  const std::unique_ptr<Backend> backend = options.backend.open();
  Trial trial(*backend, problem, outputs, -1, options.backend.timeout_s * 1000);
  const std::vector<assay_algorithm> all = backend->algorithms(trial.call());
  for (const assay_algorithm& each : all) fmt::print("{:>6}  {:>12} bytes of workspace  {}\n", each.id, each.workspace_bytes, each.description);
  if (all.empty()) fmt::print("backend {} lists no algorithms for this case\n", backend->name());
  return all.empty() ? ExitCode::nothing_selected : ExitCode::passed;
}

ExitCode list_axes(const Options& options) {
  const std::unique_ptr<Backend> backend = options.backend.open();
  const std::vector<assay_axis> all = backend->axes();
  for (const assay_axis& each : all) fmt::print("{:<20} {}\n{:<20} values: {}\n", each.name, each.description, "", each.values);
  if (all.empty()) fmt::print("backend {} has no axes\n", backend->name());
  return ExitCode::passed;
}

ExitCode list_cases(const Options& options) {
  const Selection selection = select(catalogue(*profile_named(options.profile)), options.words);
  for (const std::string& word : selection.unmatched) fmt::print(stderr, "no case of profile {} matches '{}'\n", options.profile, word);
  if (!selection.unmatched.empty() || selection.cases.empty()) return ExitCode::nothing_selected;
  if (!options.json.empty()) {
    nlohmann::json all = nlohmann::json::array();
    for (const CaseLine& line : selection.cases) all.push_back({{"name", name_of(line)}, {"case", to_text(line)}});
    write_json(options.json, all);
  }
  for (const CaseLine& line : selection.cases) fmt::print("{}\n", options.names ? name_of(line) : to_text(line));
  return ExitCode::passed;
}

}  // namespace

Action add_list(CLI::App& verb) {
  const auto options = std::make_shared<Options>();
  verb.add_option("WORDS", options->words, "Only cases whose name or line contains every word");
  verb.add_option("--profile", options->profile, "smoke, standard or full")->capture_default_str()->check(CLI::IsMember({"smoke", "standard", "full"}));
  verb.add_flag("--names", options->names, "Names instead of case lines");
  verb.add_option("--json", options->json, "Write names and lines to this file");
  verb.add_flag("--backends", options->backends, "The built-in backends");
  options->backend.add_backend_to(verb);
  verb.add_option("--algorithms", options->algorithms_of, "The algorithms that a backend lists for this case line, for --algorithm");
  verb.add_flag("--axes", options->axes, "The configuration axes of a backend, for --axis");
  CLI::Option* schema = verb.add_flag("--schema", options->schema, "The words of case lines: every op, key, default and value");
  verb.add_option("--op", options->op, "With --schema: one op")->needs(schema);
  verb.add_flag("--plans", options->plans, "The accumulation plans that are known");
  verb.add_flag("--units", options->units, "The rows of the tensor-core table, and how each is known");
  return [options]() -> ExitCode {
    if (!options->algorithms_of.empty()) return list_algorithms(*options);
    if (options->axes) return list_axes(*options);
    if (options->backends) {
      for (const assay_backend* each : built_in_backends()) fmt::print("{:<12} {}\n", each->name, each->description);
    } else if (options->schema) {
      fmt::print("{}", describe_case_schema(options->op));
    } else if (options->plans) {
      list_plans();
    } else if (options->units) {
      list_units();
    } else {
      return list_cases(*options);
    }
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
