#pragma once
// Which backend is judged, and how: the options that run, verify and repro share.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/judge/judge.h"
#include "conformance/suites/devices.h"

namespace assay::conformance {

// "device" where this build and this machine have one that works, else "reference". `why_not`, if given, receives the reason
// why the device cannot be used, or nothing.
std::string best_backend(std::string* why_not = nullptr);

class BundleFolder;
class Predictions;

struct BackendChoice {
  std::string name = "reference";
  std::string options;
  std::int64_t timeout_s = 60;
  std::int64_t algorithm = -1;
  std::vector<std::string> axes;  // NAME=VALUE
  bool explains = true;           // search for the cause of a difference
  int retries = 0;                // times that a case which fails is judged again
  std::shared_ptr<const Predictions> predictions =
      {};                 // expected outputs as digests (predictions_file.h); null: they are computed
  std::string expect_by;  // backend whose answers are expected in grouped_gemm cases; empty: the reference's
  // How the case of a line is repeated where not by this program: `assay.check(...)` of Python. Empty: `assay repro`.
  std::function<std::string(const std::string& line)> reproduce = {};

  bool keeps_got = false;  // keep wrong outputs in the judgement
  // Where wrong outputs are saved (failure_bundle.h); null: nowhere.
  std::shared_ptr<BundleFolder> save_got = {};

  std::vector<JudgingDevice> devices = {};  // among which cases are divided; empty: what the backend itself takes

  // Opens the backend, on this one of `devices` if there are any, and sets its axes. Errors: BackendError.
  std::unique_ptr<Backend> open(std::size_t device = 0) const;
  // The backend whose answers are expected; null where it is the reference's. Errors: BackendError.
  std::unique_ptr<Backend> open_expecting(std::size_t device = 0) const;
  // The one of `devices`, as CUDA_VISIBLE_DEVICES names it; empty: there are none.
  std::string visible(std::size_t device) const { return device < devices.size() ? devices[device].visible : ""; }
  // Command-line words that choose the same backend and the same files of units, with a leading blank.
  std::string words() const;
  JudgeOptions judge_options() const;
};

// `word` as a shell would need it.
std::string quoted(const std::string& word);

// How the program was started, for commands that are printed to be pasted: ASSAY_COMMAND, which a script that starts it
// sets ("./assay"), else "assay".
std::string command_name();

}  // namespace assay::conformance
