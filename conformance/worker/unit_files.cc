#include "conformance/worker/unit_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "reference/arithmetic/unit_table.h"
#include "reference/types/error.h"

namespace assay::conformance::worker {
namespace {

constexpr const char* kUnitsVariable = "ASSAY_UNITS";
constexpr std::uintmax_t kMostBytes = 1 << 20;

// Every process that judges reads the file again, so a pipe would not do.
std::string text_of_units(const std::string& file) {
  require(file.find(':') == std::string::npos, "a file of units", file,
          "a path without a colon, which separates paths in ASSAY_UNITS");
  std::error_code failed;
  require(std::filesystem::is_regular_file(file, failed), "a file of units", file, "a regular file that can be read");
  require(std::filesystem::file_size(file, failed) <= kMostBytes && !failed, "a file of units", file, "a file of at most 1 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  require(stream.good(), "a file of units", file, "a regular file that can be read");
  return text;
}

}  // namespace

std::vector<std::string> unit_files() {
  std::vector<std::string> files;
  const char* const value = std::getenv(kUnitsVariable);
  for (std::string rest = value == nullptr ? "" : value; !rest.empty();) {
    const std::string file = rest.substr(0, rest.find(':'));
    if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    rest.erase(0, file.size() + 1);
  }
  return files;
}

void use_unit_files(const std::vector<std::string>& files) {
  std::string all;
  for (const std::string& file : unit_files()) all += (all.empty() ? "" : ":") + file;
  for (const std::string& file : files) {
    text_of_units(file);
    all += (all.empty() ? "" : ":") + file;
  }
  if (all.empty()) return;
  setenv(kUnitsVariable, all.c_str(), 1);
  for (const std::string& file : unit_files()) add_tensor_core_units(text_of_units(file), file);
}

}  // namespace assay::conformance::worker
