#include "conformance/tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace assay::fuzz {
namespace {

// clang-format off
constexpr Target kTargets[] = {
    {"case_lines", run_case_lines, "case lines, one a line: parsed, printed, and the small ones generated, answered and emitted"},
    {"case_text", run_case_text, "a file of cases, as of --cases"},
    {"plan_lines", run_plan_lines, "accumulation plans, one a line"},
    {"units", run_units, "rows of tensor-core units, as of --units"},
    {"presets", run_presets, "rows of scale rules, as of --presets; each is tried on a small tensor"},
    {"level", run_level, "a level, or a file of --require"},
    {"results", run_results, "a file of --results or a report of --json"},
    {"calls", run_calls, "a case line and edits of its call, made through the interface"},
    {"waivers", run_waivers, "a file of --waivers, in TOML"},
    {"merge", run_merge, "result files, each behind a line '=== NAME', merged"},
    {"report", run_report, "result files in the same form, as pages and files for CI servers"},
    {"journal", run_journal, "the files of a journal's folder, in the same form, merged"},
    {"predictions", run_predictions, "a file of predict, as --predicted and --resume read it"},
    {"fixtures", run_fixtures, "an HDF5 file, read in a process of its own"},
};
// clang-format on

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& each) { return each.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

void promise(bool holds, std::string_view what, std::string_view input) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\ninput: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(std::min<std::size_t>(input.size(), 4000)), input.data());
  std::abort();
}

InputFile::InputFile(std::string_view data) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
  bool good = descriptor_ >= 0;
  for (std::size_t at = 0; good && at < data.size();) {
    const ssize_t written = write(descriptor_, data.data() + at, data.size() - at);
    good = written > 0;
    at += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
  }
  promise(good, "the test can write to memory", "");
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace assay::fuzz
