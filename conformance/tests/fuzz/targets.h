#pragma once
// Fuzz targets: each takes any bytes as one kind of input and must come back. A fault of the program is a crash, a report of a
// sanitizer, an exception that is not documented, or a broken promise, which ends the process with a line that names it.

#include <span>
#include <string>
#include <string_view>

namespace assay::fuzz {

struct Target {
  const char* name;  // also the folder in corpus/
  void (*run)(std::string_view data);
  const char* help;
};

std::span<const Target> targets();
const Target* find_target(std::string_view name);

// Ends the process unless `holds`.
void promise(bool holds, std::string_view what, std::string_view input);

// A file that holds `data` while this lives, without a name in a folder.
class InputFile {
 public:
  explicit InputFile(std::string_view data);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int descriptor_ = -1;
  std::string path_;
};

void run_case_lines(std::string_view data);
void run_case_text(std::string_view data);
void run_plan_lines(std::string_view data);
void run_units(std::string_view data);
void run_presets(std::string_view data);
void run_level(std::string_view data);
void run_results(std::string_view data);
void run_calls(std::string_view data);
void run_waivers(std::string_view data);
void run_merge(std::string_view data);
void run_report(std::string_view data);
void run_journal(std::string_view data);
void run_predictions(std::string_view data);
void run_fixtures(std::string_view data);

}  // namespace assay::fuzz
