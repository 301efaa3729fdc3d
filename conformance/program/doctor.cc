// assay doctor: what this build and this machine can do.

#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "conformance/backends/backend_handle.h"
#include "conformance/program/verbs.h"
#include "conformance/report/report.h"
#include "conformance/report/version.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/support/standard_output.h"
#include "conformance/support/wrap.h"
#include "conformance/worker/answers.h"
#include "conformance/worker/process.h"
#include "golden/io/manifest.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

struct Fact {
  std::string subject, text;
  ExitCode code = ExitCode::passed;
};

// The findings of check_manifest, or that there are no fixtures to check.
std::vector<std::string> faults_of(const std::filesystem::path& folder) {
  if (golden_files().empty()) return {fmt::format("none in {} (ASSAY_GOLDEN sets the folder)", folder.string())};
  try {
    return golden::check_manifest(folder);
  } catch (const golden::FixtureError& error) {
    return {error.what()};
  }
}

// The vector extensions that run-time dispatch uses on this processor. Results are the same with all of them.
std::string vector_code() {
#if defined(__x86_64__) && !defined(ASSAY_PORTABLE)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "AVX-512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
  return "SSE2";
#else
  return "plain";
#endif
}

// Whether the CUDA implementation can be judged here. If not, that is not a fault.
std::string cuda() {
  try {
    Backend backend("device");
    const assay_device_info info = backend.device_info();
    return fmt::format("{} ({}), {}: device cases can run", info.name, info.architecture, info.software);
  } catch (const BackendError& error) {
    return fmt::format("{}; device cases cannot run, everything else can", error.what());
  }
}

// Runs in a process of its own, which loads the library.
std::vector<std::string> cublaslt() {
  constexpr std::chrono::seconds kLimit{60};
  const worker::SharedMemory nothing(4096);
  const std::shared_ptr<worker::Process> process =
      worker::Process::start({worker::worker_program()}, {worker::kFindings}, nothing.descriptor(), {});
  if (!process->wait(kLimit)) {
    process->kill();
    return {fmt::format("the process that loads it did not end within {} s", kLimit.count())};
  }
  std::vector<std::string> lines;
  std::istringstream text(printable(process->printed()));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  if (process->end_text() != "ended with exit code 0") lines.push_back("the process that loads it " + process->end_text());
  return lines;
}

std::vector<Fact> facts_of(const std::string& backend_name, const std::string& backend_options) {
  std::vector<Fact> found;
  found.push_back({"assay", fmt::format("{}, built with {}", kVersion, __VERSION__)});
  found.push_back({"threads", fmt::format("{} (ASSAY_THREADS sets it)", thread_count())});
  found.push_back({"vector code", vector_code()});
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  found.push_back({"hdf5", fmt::format("{}.{}.{}", major, minor, release)});
  found.push_back({"cuda", cuda()});
  for (const std::string& line : cublaslt()) found.push_back({"cublaslt", line});
  const std::filesystem::path folder = golden_folder();
  const std::vector<std::string> faults = faults_of(folder);
  if (faults.empty())
    found.push_back({"fixtures", fmt::format("{} files in {}, every digest right", golden_files().size(), folder.string())});
  for (const std::string& fault : faults) found.push_back({"fixtures", fault, ExitCode::bad_fixture});
  try {
    Backend backend(backend_name, backend_options);
    const assay_device_info info = backend.device_info();
    found.push_back({"backend", fmt::format("{}: {} ({}), {}", backend.name(), info.name, info.architecture, info.software)});
    if (!backend.can_capture()) found.push_back({"backend", "has no capture and replay: replay cases cannot run"});
  } catch (const BackendError& error) {
    found.push_back({"backend", error.what(), ExitCode::machine_failed});
  }
  return found;
}

}  // namespace

Action add_doctor(cli::App& verb) {
  struct Options {
    std::string backend = "reference", backend_options, json;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("--backend", options->backend, "Also open this backend")->capture_default_str();
  verb.add_option("--backend-options", options->backend_options, "Text for its open()");
  verb.add_option("--json", options->json, "Write the findings to this file");
  return [options] {
    Outcome outcome;
    nlohmann::json all = nlohmann::json::array();
    const bool is_narrow = isatty(STDOUT_FILENO) == 1;  // otherwise one line per fact, for programs that read it
    for (const Fact& each : facts_of(options->backend, options->backend_options)) {
      const bool good = each.code == ExitCode::passed;
      say("{:<6}{:<12} {}\n", good ? "ok" : "FAULT", each.subject,
          is_narrow ? wrapped(each.text, 19, 19, kTableColumns) : each.text);
      all.push_back({{"subject", each.subject}, {"good", good}, {"text", each.text}});
      if (!good) outcome.add(each.code);
    }
    if (!options->json.empty()) {
      write_json(options->json, all);
    }
    return outcome.exit_code();
  };
}

}  // namespace assay::conformance
