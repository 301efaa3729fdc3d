// The `assay` program: parses the command line, runs one verb, returns its exit code.

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <system_error>

#include "conformance/backends/backend_handle.h"
#include "conformance/cases/case_schema.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/memory_limit.h"
#include "conformance/program/verbs.h"
#include "conformance/report/run_header.h"
#include "conformance/report/version.h"
#include "conformance/support/forked.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"
#include "conformance/worker/remote.h"
#include "conformance/worker/row_files.h"
#include "conformance/worker/server.h"
#include "golden/io/reader.h"
#include "golden/io/replace_file.h"
#include "reference/types/error.h"

namespace {

using namespace assay;
using namespace assay::conformance;

constexpr const char* kFooter = R"(Exit codes:
  0  at least one case ran and every case asked for passed; or none of them is in this shard
  1  at least one failure; or a required case that did not pass, or a loss against a baseline
  2  wrong usage
  3  a fixture or a result file is unreadable, truncated, of another schema or inconsistent
  4  nothing selected
  5  incomplete: interrupted, a selected case did not finish, or (merge) a shard or a case is missing
  6  a skip without proof: a path was declared absent, but the call did something else
  7  a waiver is out of date: it expired, or its case passes
  9  the machine failed: no device where one was required, device lost, out of memory, disk full, fixtures missing
Where several apply, the first of 9, 3, 1, 6, 7, 5 is returned and all are listed.

Environment: ASSAY_THREADS (CPU threads), ASSAY_GOLDEN (folder of the fixtures), ASSAY_UNITS and ASSAY_PRESETS (files as
of --units and --presets, with colons between them), ASSAY_COMMAND (how commands that are printed to be pasted begin),
NO_COLOR, GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX (run).)";

struct Verb {
  const char* name;
  const char* help;
  Action (*add)(cli::App&);
};
constexpr Verb kVerbs[] = {
    {"run", "Judge a backend on the conformance suite", add_run},
    {"verify", "Judge a backend on the cases of fixture files", add_verify},
    {"predict", "Compute digests of expected outputs without the device, for run --predicted", add_predict},
    {"compute", "Fill in the expected outputs of cases that have only inputs", add_compute},
    {"list", "List cases, backends, ops, plans and units", add_list},
    {"repro", "Run one case from its line, and save it as a fixture if asked", add_repro},
    {"scale-map", "Say which scale each tile of a product really used", add_scale_map},
    {"report", "Make an HTML page, Markdown, JUnit, CTRF and KCIDB from result files", add_report},
    {"explain", "Name the cause of a failure: the changed call that gives every word", add_explain},
    {"shrink", "Find the smallest case line that fails in the same way", add_shrink},
    {"trace", "Show how one element of an output comes about, step by step", add_trace},
    {"emit", "Write one case as a self-contained C file, for simulators and RTL", add_emit},
    {"matrix", "Make one page from the result files of several runs", add_matrix},
    {"merge", "Join the files of shards or the journals of workers, and name what is missing", add_merge},
    {"selftest", "Plant faults in the reference and say which of them the suite finds", add_selftest},
    {"doctor", "Say what this build and this machine can do", add_doctor},
};

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  return did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

// The first unknown verb or option, with the nearest known one; empty if there is none.
std::string unknown_word(const cli::App& app, int argc, char** argv) {
  const cli::App* verb = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    if (word.starts_with("--") && word.size() > 2) {
      for (const cli::Option* each : verb->get_options()) {
        for (const std::string& option : each->get_lnames()) known.push_back("--" + option);
      }
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return fmt::format("{} has no option {}{}", verb->get_name(), name, suggestion(name, known));
      }
    } else if (!word.starts_with('-') && !verb->get_subcommands({}).empty()) {
      const cli::App* next = nullptr;
      for (const cli::App* each : verb->get_subcommands({})) {
        known.push_back(each->get_name());
        if (each->get_name() == word) next = each;
      }
      if (next == nullptr) return fmt::format("'{}' is not a verb of {}{}", word, verb->get_name(), suggestion(word, known));
      verb = next;
    }
  }
  return "";
}

ExitCode dispatch(int argc, char** argv) {
  cli::App app{"Assay: is every bit of a grouped low-precision GEMM right, and if not, which bit, and why?", "assay"};
  app.set_version_flag("--version", std::string("assay ") + kVersion);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  Action chosen;
  for (const Verb& verb : kVerbs) {
    cli::App& command = *app.add_subcommand(verb.name, verb.help);
    Action action = verb.add(command);
    command.final_callback([&chosen, action] { chosen = action; });
  }
  cli::App& golden_verb =
      *app.add_subcommand("golden", "Build the fixtures of golden/, or check that they rebuild byte for byte");
  golden_verb.require_subcommand(1);
  for (const auto& [name, help, add] :
       {Verb{"build", "Write every fixture that the reference makes", add_golden_build},
        Verb{"check", "Rebuild in memory and compare with the files; compare the oracles with their digests",
             add_golden_check}}) {
    cli::App& command = *golden_verb.add_subcommand(name, help);
    Action action = add(command);
    command.final_callback([&chosen, action] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {
    if (const std::string unknown = unknown_word(app, argc, argv); error.get_exit_code() != 0 && !unknown.empty()) {
      warn("assay: {}\nRun with --help for more information.\n", unknown);
      return ExitCode::usage;
    }
    if (error.get_exit_code() != 0) {
      warn("assay: {}\nRun with --help for more information.\n", error.what());
      return ExitCode::usage;
    }
    return app.exit(error) == 0 ? ExitCode::passed : ExitCode::usage;
  }
  worker::use_row_files(worker::kUnitRows, units_given());
  worker::use_row_files(worker::kPresetRows, presets_given());
  return chosen();
}

int run_main(int argc, char** argv) {
  try {
    return static_cast<int>(dispatch(argc, argv));
  } catch (const golden::OutputError& error) {
    warn("assay: {}\n", error.what());
    return static_cast<int>(error.is_machine() ? ExitCode::machine_failed : ExitCode::usage);
  } catch (const golden::FixtureError& error) {
    warn("assay: {}\n", error.what());
    return static_cast<int>(ExitCode::bad_fixture);
  } catch (const BackendFault& fault) {
    warn("assay: {}\n", fault.what());
    return static_cast<int>(fault.status() == ASSAY_TIMEOUT ? ExitCode::incomplete : ExitCode::failed);
  } catch (const BackendError& error) {
    warn("assay: {}\n", error.what());
    const bool usage = error.status() == ASSAY_INVALID_ARGUMENT || error.status() == ASSAY_FAILED;
    return static_cast<int>(usage ? ExitCode::usage : ExitCode::machine_failed);
  } catch (const ProcessError& error) {
    warn("assay: {}\n", error.what());
    return static_cast<int>(ExitCode::machine_failed);
  } catch (const golden::MachineError& error) {
    warn("assay: {}\n", error.what());
    return static_cast<int>(ExitCode::machine_failed);
  } catch (const std::bad_alloc&) {
    warn("assay: out of memory\n");
    return static_cast<int>(ExitCode::machine_failed);
  } catch (const std::system_error& error) {  // for example, a thread that does not start
    const bool scarce = error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory;
    warn("assay: {}{}\n", scarce ? "out of memory or processes: " : "", error.what());
    const bool full = error.code() == std::errc::no_space_on_device || error.code() == std::errc::io_error;  // standard output
    return static_cast<int>(scarce || full ? ExitCode::machine_failed : ExitCode::usage);
  } catch (const std::exception& error) {
    warn("assay: {}\n", error.what());
    return static_cast<int>(ExitCode::usage);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> served = worker::serve_as_worker(argc, argv)) return *served;
  open_standard_descriptors();
  prepare_for_memory_limit();
  catch_interrupts();
  worker::end_early_when(interrupted);
  keep_arguments(argc, argv);
  int code = run_main(argc, argv);
  if (standard_output_lost_its_reader()) end_by_broken_pipe();
  if (const std::string fault = standard_output_fault(); !fault.empty()) {  // lost results are not a pass
    warn("assay: standard output cannot be written: {}\n", fault);
    code = static_cast<int>(ExitCode::machine_failed);
  }
  return code;
}
