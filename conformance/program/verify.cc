// assay verify FILE.h5 ...

#include <fmt/format.h>

#include "conformance/program/backend_options.h"
#include "conformance/program/verbs.h"
#include "conformance/report/run_header.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"

namespace assay::conformance {

Action add_verify(cli::App& verb) {
  struct Options {
    std::vector<std::string> files;
    std::vector<std::string> cases;
    BackendChoice backend;
    std::string device;
    std::string json;
    int show = 10;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->files, "Fixture files (HDF5, fixture schema 1 or 2)")->required();
  verb.add_option("--case", options->cases, "Only cases whose path contains this; again to narrow further")
      ->allow_extra_args(false);
  add_judge_options(verb, options->backend);
  add_device(verb, options->device);
  verb.add_option("--json", options->json, "Write every verdict to this file");
  verb.add_option("--show", options->show, "Failures printed in full")->capture_default_str()->check(cli::Range(0, 1'000'000));
  verb.add_flag("--quiet", options->quiet, "No progress");
  return [options] {
    if (!options->json.empty()) check_output(options->json);
    const auto finish = [&](Report& report) {
      if (interrupted()) report.note_interrupted();
      if (!options->json.empty()) head(report, "verify", options->backend);
      report.conclude(options->json);
      return report.exit_code();
    };
    options->backend.devices = devices_given(options->device, options->backend.name, true);
    std::unique_ptr<Backend> backend;
    TestedBackend tested;
    try {
      backend = options->backend.open();
      tested = tested_backend_of(*backend, options->backend);  // a fault is reported below
    } catch (const BackendFault& fault) {
      tested = unopened(options->backend);
      Report report("verify", tested, options->show);
      report.add(report_of_open(fault));
      return finish(report);
    }
    warn("assay: judging {}: {} fixture file{}\n", tested.text(), options->files.size(), options->files.size() == 1 ? "" : "s");
    Report report("verify", tested, options->show);
    if (const std::string note = backend->note(); !note.empty()) report.note(note);
    keep_open(options->backend, std::move(backend));
    const std::vector<std::filesystem::path> files(options->files.begin(), options->files.end());
    const std::int64_t selected = judge_fixtures(files, options->cases, options->backend, !options->quiet, report);
    close_backends(report);
    if (selected == 0 && report.exit_code() == ExitCode::passed) {
      report.note_nothing_selected(options->cases.empty() ? "the files hold no cases" : "no case has that path");
    }
    return finish(report);
  };
}

}  // namespace assay::conformance
