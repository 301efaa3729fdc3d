#pragma once
// Options that run, verify and repro share.

#include "conformance/program/cli.h"
#include "conformance/suites/backend_choice.h"
#include "golden/io/fixture_error.h"

namespace assay::conformance {

// Files of --units, which the program reads when the command line is parsed, before the verb does anything.
inline std::vector<std::string>& units_given() {
  static std::vector<std::string> files;
  return files;
}
// The same of --presets.
inline std::vector<std::string>& presets_given() {
  static std::vector<std::string> files;
  return files;
}
inline void add_table_options(cli::App& verb) {
  verb.add_option("--units", units_given(),
                  "A file of further tensor-core units, a row each (reference/spec/tensor-core.md, clause 2.2); again for more")
      ->allow_extra_args(false);
  verb.add_option("--presets", presets_given(),
                  "A file of further scale rules, a row each (reference/spec/scale-rules.md, clause 1.2); again for more")
      ->allow_extra_args(false);
}

// Options that choose a backend.
inline void add_backend_options(cli::App& verb, BackendChoice& choice) {
  verb.add_option(
          "--backend", choice.name,
          "reference, null, device, emulated, cublaslt, the path of a shared library (conformance/backend.h), or a function: "
          "python:MODULE:NAME, ffi:LIBRARY:SYMBOL (docs/judge_a_python_kernel.md)")
      ->capture_default_str();
  verb.add_option("--backend-options", choice.options, "Text for the backend's open(); reference: layer=fast or layer=scalar");
}

// These, and those that say how it is judged.
inline void add_judge_options(cli::App& verb, BackendChoice& choice) {
  add_backend_options(verb, choice);
  add_table_options(verb);
  verb.add_option("--axis", choice.axes, "Set a configuration axis, as NAME=VALUE; again for others (assay list --axes)")
      ->allow_extra_args(false);
  verb.add_option(
      "--expect-by", choice.expect_by,
      "Backend whose answers to grouped_gemm are expected, as emulated for whole large outputs; else the reference's");
  verb.add_option("--timeout", choice.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(cli::Range(1, 86400));
  verb.add_option("--algorithm", choice.algorithm, "Pin an algorithm by its id (assay list --algorithms)")
      ->check(cli::NonNegativeNumber);
}

// --device of verify and repro.
inline void add_device(cli::App& verb, std::string& device) {
  verb.add_option("--device", device,
                  "The number of the device that the backend sees, and no other one, in the order of nvidia-smi");
}

// The devices that --device names. Errors: cli::ValidationError; golden::MachineError where the machine shows none.
inline std::vector<JudgingDevice> devices_given(const std::string& text, const std::string& backend, bool single) {
  if (text.empty()) return {};
  ChosenDevices chosen = chosen_devices(text, backend, single);
  if (chosen.fault.empty()) return std::move(chosen.devices);
  if (chosen.is_usage) throw cli::ValidationError("--device", chosen.fault);
  throw golden::MachineError("--device " + chosen.fault);
}

// --save-got of run and repro: `folder` gets the path.
inline void add_save_got(cli::App& verb, std::string& folder) {
  verb.add_option("--save-got", folder,
                  "Save each failing case whose outputs are wrong to a file of this folder, with what it read and gave: "
                  "assay explain and assay trace read it, on any machine");
}

}  // namespace assay::conformance
