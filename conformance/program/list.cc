// assay list: what there is to run, and the words for it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <fstream>

#include "conformance/backends/backend.h"
#include "conformance/cases/case_schema.h"
#include "conformance/cases/catalogue.h"
#include "conformance/program/verbs.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string profile = "standard";
  std::string op;
  std::string json;
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

ExitCode list_cases(const Options& options) {
  const Selection selection = select(catalogue(*profile_named(options.profile)), options.words);
  for (const std::string& word : selection.unmatched) fmt::print(stderr, "no case of profile {} matches '{}'\n", options.profile, word);
  if (!selection.unmatched.empty() || selection.cases.empty()) return ExitCode::nothing_selected;
  if (!options.json.empty()) {
    nlohmann::json all = nlohmann::json::array();
    for (const CaseLine& line : selection.cases) all.push_back({{"name", name_of(line)}, {"case", to_text(line)}});
    std::ofstream file(options.json);
    file << all.dump(1) << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
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
  verb.add_flag("--schema", options->schema, "The words of case lines: every op, key, default and value");
  verb.add_option("--op", options->op, "With --schema: one op");
  verb.add_flag("--plans", options->plans, "The accumulation plans that are known");
  verb.add_flag("--units", options->units, "The rows of the tensor-core table, and how each is known");
  return [options]() -> ExitCode {
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
