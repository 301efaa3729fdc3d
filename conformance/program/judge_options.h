#pragma once
// Options that run, verify and repro share.

#include <memory>
#include <string>
#include <vector>

#include "conformance/backends/backend.h"
#include "conformance/program/cli.h"
#include "conformance/run/judge.h"

namespace assay::conformance {

// "device" where this build and this machine have one that works, else "reference". `why_not`, if given, receives what is
// in the device's way, or nothing.
std::string best_backend(std::string* why_not = nullptr);

struct BackendChoice {
  std::string name = "reference";
  std::string options;
  std::int64_t timeout_s = 60;
  std::int64_t algorithm = -1;
  std::vector<std::string> axes;  // NAME=VALUE
  bool explains = true;           // the cause of what differs is looked for
  std::string expect_by;          // backend whose answers grouped_gemm cases are held to; empty: the reference's

  // Options that choose a backend, and those that say how it is judged too.
  void add_backend_to(CLI::App& verb) {
    verb.add_option("--backend", name, "reference, null, device, emulated, cublaslt, or the path of a shared library (conformance/backend.h)")->capture_default_str();
    verb.add_option("--backend-options", options, "Text for the backend's open(); reference: layer=fast or layer=scalar");
  }
  void add_to(CLI::App& verb) {
    add_backend_to(verb);
    verb.add_option("--axis", axes, "Set a configuration axis, as NAME=VALUE; again for others (assay list --axes)")->allow_extra_args(false);
    verb.add_option("--expect-by", expect_by, "Backend whose answers to grouped_gemm are expected, as emulated for whole large outputs; else the reference's");
    verb.add_option("--timeout", timeout_s, "Seconds that one call may take")->capture_default_str()->check(CLI::Range(1, 86400));
    verb.add_option("--algorithm", algorithm, "Pin an algorithm by its id (assay list --algorithms)")->check(CLI::NonNegativeNumber);
  }
  // Opens the backend and sets its axes. Errors: BackendError.
  std::unique_ptr<Backend> open() const;
  // The backend whose answers are expected; null where it is the reference's. Errors: BackendError.
  std::unique_ptr<Backend> open_expecting() const;
  // Command-line words that choose the same backend, with a leading blank.
  std::string words() const;
  JudgeOptions judge_options() const;
};

// `word` as a shell would need it.
std::string quoted(const std::string& word);

// How the program was started, for commands that are printed to be pasted: ASSAY_COMMAND, which a script that starts it
// sets ("./assay"), else "assay".
std::string command_name();

}  // namespace assay::conformance
