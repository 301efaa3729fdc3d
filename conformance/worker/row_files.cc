#include "conformance/worker/row_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "reference/arithmetic/unit_table.h"
#include "reference/rules/scale_rule.h"
#include "reference/types/error.h"

namespace assay::conformance::worker {
namespace {

constexpr std::uintmax_t kMaxBytes = 1 << 20;

// Every process that judges reads the file again, so a pipe would not do.
std::string text_of(const RowTable& table, const std::string& file) {
  require(file.find(':') == std::string::npos, table.file, file,
          std::string("a path without a colon, which separates paths in ") + table.variable);
  std::error_code failed;
  require(std::filesystem::is_regular_file(file, failed), table.file, file, "a regular file that can be read");
  require(std::filesystem::file_size(file, failed) <= kMaxBytes && !failed, table.file, file, "a file of at most 1 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  require(stream.good(), table.file, file, "a regular file that can be read");
  return text;
}

}  // namespace

const RowTable kUnitRows{"--units", "ASSAY_UNITS", "a file of units", add_tensor_core_units};
const RowTable kPresetRows{"--presets", "ASSAY_PRESETS", "a file of presets", add_scale_rules};

std::vector<std::string> row_files(const RowTable& table) {
  std::vector<std::string> files;
  const char* const value = std::getenv(table.variable);
  for (std::string rest = value == nullptr ? "" : value; !rest.empty();) {
    const std::string file = rest.substr(0, rest.find(':'));
    if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    rest.erase(0, file.size() + 1);
  }
  return files;
}

void use_row_files(const RowTable& table, const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : row_files(table)) all += (all.empty() ? "" : ":") + file;
  for (const std::string& file : files) {
    text_of(table, file);
    all += (all.empty() ? "" : ":") + file;
  }
  if (all.empty()) return;
  setenv(table.variable, all.c_str(), 1);
  for (const std::string& file : row_files(table)) table.add(text_of(table, file), file);
}

}  // namespace assay::conformance::worker
