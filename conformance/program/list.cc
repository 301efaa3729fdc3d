// assay list: cases, fixtures, backends, plans, units, levels and the schema of cases.

#include <fmt/format.h>

#include <map>

#include <nlohmann/json.hpp>

#include "conformance/catalogue/catalogue.h"
#include "conformance/catalogue/reach.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/levels/levels.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/case_files.h"
#include "conformance/program/list_schema.h"
#include "conformance/program/verbs.h"
#include "conformance/report/report.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "conformance/support/wrap.h"
#include "conformance/worker/row_files.h"
#include "golden/io/contained_reader.h"
#include "golden/io/manifest.h"
#include "reference/arithmetic/unit_table.h"
#include "reference/gemm/plan.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance {
namespace {

struct ListOptions {
  std::vector<std::string> words, case_files;
  std::string profile = "standard";
  std::string op;
  std::string json;
  BackendChoice backend;
  std::string algorithms_of;
  bool axes = false;
  bool backends = false, plans = false, units = false, presets = false, schema = false, names = false, levels = false,
       counts = false, reach = false;
};

// A column of a table that begins after `indent` columns; `first` where its first line does.
std::string in_table(std::string_view text, std::size_t indent, std::size_t first) {
  return wrapped(text, indent, first, kTableColumns);
}
std::string in_table(std::string_view text, std::size_t indent) { return in_table(text, indent, indent); }

const char* how_known(bool measured) { return measured ? "measured by us" : "not measured by us"; }

// `files`: further rows.
void list_units(const std::vector<std::string>& files) {
  worker::use_row_files(worker::kUnitRows, files);
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    std::string numbers = fmt::format("L={}", unit.products_per_step);
    if (unit.fraction_bits != 0) numbers += fmt::format(" F={}", unit.fraction_bits);
    if (unit.sum != StepSum::fused) numbers += fmt::format(", {} sum", name_of(unit.sum));
    say("{}\n  {}\n  {}, {}\n  {}\n", unit.name, unit.instruction, numbers, how_known(unit.measured_by_us),
        in_table(unit.evidence, 2));
  }
}

void list_plans() {
  for (const AccumulationPlan& plan : accumulation_plans())
    say("{}\n  {}\n  {}\n", plan.name, plan_line(plan), in_table(evidence_of(plan), 2));
}

nlohmann::json preset_json(const ScaleRule& rule) {
  nlohmann::json row{{"name", rule.name},       {"scale_type", std::string(name_of(rule.scale_type))},
                     {"storage", rule.storage}, {"rule", rule.text},
                     {"source", rule.source},   {"evidence", rule.evidence},
                     {"row", to_text(rule)}};
  if (rule.is_gated()) row["activation"] = rule.activation_text;
  for (const BlockShape& each : rule.blocks) row["blocks"].push_back(to_text(each));
  for (const Format each : rule.outputs) row["outputs"].push_back(std::string(name_of(each)));
  return row;
}

// Every preset of scale rules: what it computes and where that stands.
void list_presets(const std::string& json, const std::vector<std::string>& files) {
  worker::use_row_files(worker::kPresetRows, files);
  if (!json.empty()) {
    nlohmann::json rows = nlohmann::json::array();
    for (const ScaleRule& rule : scale_rules()) rows.push_back(preset_json(rule));
    write_json(json, {{"presets", std::move(rows)}});
  }
  for (const ScaleRule& rule : scale_rules()) {
    std::string blocks, outputs;
    for (const BlockShape& each : rule.blocks) blocks += (blocks.empty() ? "" : ", ") + to_text(each);
    for (const Format each : rule.outputs) outputs += (outputs.empty() ? "" : ", ") + std::string(name_of(each));
    say("{}\n  blocks {}; codes {}; scales {}, {}\n", rule.name, blocks, outputs, name_of(rule.scale_type), rule.storage);
    if (rule.is_gated()) say("  activation {}\n", rule.activation_text);  // formulas in one line, to be copied
    say("  rule {}\n  {}\n  {}\n", rule.text, in_table("source: " + rule.source, 2), in_table(rule.evidence, 2));
  }
}

struct CatalogueTexts {
  std::vector<std::string> texts, names;
};
CatalogueTexts texts_of(Profile profile) {
  CatalogueTexts made;
  for (const CaseLine& each : catalogue(profile)) {
    made.texts.push_back(to_text(each));
    made.names.push_back(name_of(each));
  }
  return made;
}

constexpr Profile kProfiles[] = {Profile::smoke, Profile::standard, Profile::full};

void list_levels() {
  std::vector<CatalogueTexts> all;
  for (const Profile profile : kProfiles) all.push_back(texts_of(profile));
  for (const Level& level : levels()) {
    std::string counts;
    for (std::size_t i = 0; i < all.size(); ++i) {
      counts += fmt::format("{}{} {}", i == 0 ? "" : ", ", name_of(kProfiles[i]),
                            required_by(level, all[i].texts, all[i].names).size());
    }
    const std::string cases = "cases: " + counts + (level.fixtures.empty() ? "" : ", and those of the fixtures");
    say("{}\n  {}\n  {}\n", level.title(), in_table(level.claims, 2), in_table(cases, 2));
  }
}

// The counts that the pages give, so that a test can compare them.
void list_counts() {
  for (const Profile profile : kProfiles) say("profile {}: {} cases\n", name_of(profile), catalogue(profile).size());
  struct Fixtures {
    std::int64_t files = 0, cases = 0, elements = 0;
  };
  std::map<std::string, Fixtures> by_origin;
  for (const golden::ManifestEntry& entry : golden::read_manifest(golden_folder() / "manifest.json")) {
    const nlohmann::json provenance = nlohmann::json::parse(entry.provenance, nullptr, false);
    const bool recorded = provenance.is_object() && provenance.contains("device") && provenance.at("device").is_string();
    Fixtures& of = by_origin[recorded ? "recorded on " + provenance.at("device").get<std::string>() : "origin " + entry.origin];
    ++of.files;
    for (const Case& each : golden::read_fixture_contained(golden_folder() / entry.file).cases) {
      ++of.cases;
      for (const auto& [name, tensor] : each.out) of.elements += tensor.elements();
    }
  }
  for (const auto& [origin, of] : by_origin)
    say("fixtures, {}: {} files, {} cases, {} elements\n", origin, of.files, of.cases, of.elements);
  say("levels: {}\n", levels().size());
}

ExitCode list_algorithms(const ListOptions& options) {
  const CaseLine line = parse_case_line(options.algorithms_of);
  const Case problem = generate(line);
  Case copy = problem;
  std::vector<OutputSpec> outputs = outputs_of(Request::of(copy));
  const std::unique_ptr<Backend> backend = options.backend.open();
  CallRunner runner(*backend, problem, outputs, -1, options.backend.timeout_s * 1000);
  const std::vector<assay_algorithm> all = backend->algorithms(runner.call());
  for (const assay_algorithm& each : all)
    say("{:>6}  {:>12} bytes of workspace  {}\n", each.id, each.workspace_bytes, each.description);
  if (all.empty()) say("backend {} lists no algorithms for this case\n", backend->name());
  return all.empty() ? ExitCode::nothing_selected : ExitCode::passed;
}

ExitCode list_axes(const ListOptions& options) {
  const std::unique_ptr<Backend> backend = options.backend.open();
  const std::vector<assay_axis> all = backend->axes();
  for (const assay_axis& each : all)
    say("{:<20} {}\n{:<20} values: {}\n", each.name, in_table(each.description, 21), "", in_table(each.values, 21, 29));
  if (all.empty()) say("backend {} has no axes\n", backend->name());
  return ExitCode::passed;
}

ExitCode list_cases(const ListOptions& options) {
  const Profile profile = *profile_named(options.profile);
  const bool of_files = !options.case_files.empty();
  const Selection selection = select(of_files ? cases_of_files(options.case_files, profile) : catalogue(profile), options.words);
  const std::string source = (of_files ? names_of_files(options.case_files) + " in " : "") + "profile " + options.profile;
  for (const std::string& word : selection.unmatched) warn("no case of {} matches '{}'\n", source, word);
  if (selection.unmatched.empty() && selection.cases.empty()) warn("no case of {}\n", source);
  if (!selection.unmatched.empty() || selection.cases.empty()) return ExitCode::nothing_selected;
  if (options.reach) {
    say("{}", describe_reach(reach_of(selection.cases)));
    return ExitCode::passed;
  }
  if (!options.json.empty()) {
    nlohmann::json all = nlohmann::json::array();
    for (const CaseLine& line : selection.cases) all.push_back({{"name", name_of(line)}, {"case", to_text(line)}});
    write_json(options.json, all);
  }
  for (const CaseLine& line : selection.cases) say("{}\n", options.names ? name_of(line) : to_text(line));
  return ExitCode::passed;
}

}  // namespace

Action add_list(cli::App& verb) {
  const auto options = std::make_shared<ListOptions>();
  verb.add_option("WORDS", options->words, "Only cases whose name or line contains every word");
  verb.add_option("--profile", options->profile, "smoke, standard or full")
      ->capture_default_str()
      ->check(cli::IsMember({"smoke", "standard", "full"}));
  verb.add_option("--cases", options->case_files,
                  "The cases of this file in place of the catalogue's; again for more (run --help)")
      ->allow_extra_args(false);
  verb.add_flag("--reach", options->reach,
                "What these cases reach: the elements that each op has compared, and the lengths that it meets");
  verb.add_flag("--names", options->names, "Names instead of case lines");
  verb.add_option("--json", options->json, "Write names and lines, or with --schema or --presets those, to this file");
  verb.add_flag("--backends", options->backends, "The built-in backends");
  add_backend_options(verb, options->backend);
  verb.add_option("--algorithms", options->algorithms_of,
                  "The algorithms that a backend lists for this case line, for --algorithm");
  verb.add_flag("--axes", options->axes, "The configuration axes of a backend, for --axis");
  cli::Option* schema = verb.add_flag("--schema", options->schema,
                                      "Every op: its tensors with types, shapes and what is compared; the keys of case lines");
  verb.add_option("--op", options->op, "With --schema: one op")->needs(schema);
  verb.add_flag("--plans", options->plans, "The accumulation plans that have names, each as a line and how it is known");
  verb.add_flag(
      "--units", options->units,
      "The rows of the tensor-core table, and how each is known; WORDS are files of further rows, as --units of other verbs");
  verb.add_flag("--presets", options->presets,
                "The scale rules that are known (op quantize_by_rule): what each computes, and its source; WORDS are files of "
                "further rules");
  verb.add_flag("--levels", options->levels,
                "The conformance levels, what a pass of each claims, and its cases in each profile (run --require)");
  verb.add_flag("--counts", options->counts, "How many cases and fixtures there are");
  return [options]() -> ExitCode {
    if (!options->algorithms_of.empty()) return list_algorithms(*options);
    if (options->axes) return list_axes(*options);
    if (options->backends) {
      for (const assay_backend* each : built_in_backends()) say("{:<12} {}\n", each->name, in_table(each->description, 13));
    } else if (options->schema) {
      if (!options->json.empty()) write_json(options->json, schema_json(options->op));
      say("{}", schema_text(options->op));
    } else if (options->plans) {
      list_plans();
    } else if (options->units) {
      list_units(options->words);
    } else if (options->presets) {
      list_presets(options->json, options->words);
    } else if (options->levels) {
      list_levels();
    } else if (options->counts) {
      list_counts();
    } else {
      return list_cases(*options);
    }
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
