#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "golden/io/fixture_error.h"

namespace assay::golden {

// A file that cannot be written, as opposed to a damaged fixture. `error()` is the errno: no such folder, disk full.
class OutputError : public FixtureError {
 public:
  OutputError(const std::string& file, int error,
              const std::string& reason = "");  // no reason: "cannot be written: " and the errno's text
  int error() const { return error_; }
  // Whether the cause is the machine (a full disk, a failing device) and not the path.
  bool is_machine() const;

 private:
  int error_;
};

// The file that `path` refers to: the target of a symbolic link, or of a chain of them, whether it exists or not.
// Errors: OutputError for a chain without an end.
std::filesystem::path link_target(const std::filesystem::path& path);

// Writes `bytes` to `path`: into a file beside it that then takes its name, so that `path` never holds a part.
// A symbolic link stays one: the file it points to is replaced. The file keeps its permissions. Errors: OutputError if it
// cannot be written (no permission, no such folder, something other than a file); MachineError if the disk is full or fails.
// `path` is then unchanged.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Checks that replace_file could start, and leaves no file. Errors: as replace_file.
void check_replaceable(const std::filesystem::path& path);

}  // namespace assay::golden
