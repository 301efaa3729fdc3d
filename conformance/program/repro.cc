// assay repro CASE: one case from its line.

#include <fmt/format.h>

#include "conformance/generate/generator.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/verbs.h"
#include "conformance/report/run_header.h"
#include "conformance/report/version.h"
#include "conformance/suites/failure_bundle.h"
#include "conformance/suites/golden_cases.h"
#include "conformance/suites/judge_line.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"
#include "golden/io/writer.h"

namespace assay::conformance {

Action add_repro(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    BackendChoice backend;
    std::string device;
    std::string save, save_got, json;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("CASE", options->words, "A case line, quoted or not")->required();
  add_judge_options(verb, options->backend);
  add_device(verb, options->device);
  verb.add_option("--save", options->save, "Also write inputs and expected outputs to this fixture file");
  add_save_got(verb, options->save_got);
  verb.add_option("--json", options->json, "Write the verdict to this file");
  return [options] {
    std::string text;
    for (const std::string& word : options->words) text += (text.empty() ? "" : " ") + word;
    const CaseLine line = parse_case_line(text);
    for (const std::string& path : {options->json, options->save}) {
      if (!path.empty()) check_output(path);
    }
    options->backend.devices = devices_given(options->device, options->backend.name, true);
    std::unique_ptr<Backend> opened = options->backend.open();
    Backend& backend = *opened;
    const TestedBackend tested = tested_backend_of(backend, options->backend);
    Report report("repro", tested, 1);
    if (!options->json.empty()) head(report, "repro", options->backend);
    say("{}\n", to_text(line));
    if (const std::string note = backend.note(); !note.empty()) report.note(note);
    std::unique_ptr<Backend> expecting = options->backend.open_expecting();
    if (!options->save_got.empty())
      options->backend.save_got =
          std::make_shared<BundleFolder>(options->save_got, header_text("repro", tested, options->backend));
    CaseReport judged = judge_line(line, {backend, expecting.get()}, options->backend);
    if (judged.judgement.verdict == Verdict::passed) {
      const Judgement& made = judged.judgement;
      say("passed by {}: {} elements compared, with two poisons{}{}\n", basis_text(made), made.elements,
          made.elements_unbounded > 0 ? fmt::format("; {} unbounded, not compared", made.elements_unbounded) : "",
          made.way.empty() ? "" : "; " + made.way);
    }
    report.add(std::move(judged));
    if (options->backend.save_got != nullptr) tell_saved(*options->backend.save_got, report);
    keep_open(options->backend, std::move(opened));
    close_backends(report);
    if (!options->save.empty()) {
      golden::Fixture fixture;
      Case each = generate(line);
      const std::vector<std::string> wanted = wanted_outputs(line);
      fill_outputs(each, &wanted);
      fixture.schema = schema_of(each);
      fixture.provenance =
          fmt::format(R"({{"producer": "assay repro", "version": "{}", "case": "{}"}})", kVersion, to_text(line));
      fixture.cases.push_back(std::move(each));
      golden::write_fixture(options->save, fixture);
      say("saved to {}\n", options->save);
    }
    if (interrupted()) report.note_interrupted();
    report.conclude(options->json);
    return report.exit_code();
  };
}

}  // namespace assay::conformance
