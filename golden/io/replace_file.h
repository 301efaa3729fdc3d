#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "golden/io/fixture_error.h"

namespace assay::golden {

// A file that cannot be written is no damaged fixture. `error()` is the errno that says why: no such folder, disk full.
class OutputError : public FixtureError {
 public:
  OutputError(const std::string& file, int error, const std::string& reason = "");  // no reason: "cannot be written: " and the errno's text
  int error() const { return error_; }
  // The machine is at fault (a full disk, a device that fails), not the path that was given.
  bool is_machine() const;

 private:
  int error_;
};

// The file that `path` means: what a symbolic link, or a chain of them, points to, whether that exists or not.
// Errors: OutputError for a chain without an end.
std::filesystem::path link_target(const std::filesystem::path& path);

// Writes `bytes` to `path`: into a file beside it that then takes its name, so that `path` never holds a part.
// A symbolic link stays one: the file it points to is replaced. The file keeps its permissions. Errors: OutputError if it
// cannot be written (no permission, no such folder, something other than a file); MachineError if the disk is full or fails.
// `path` is then as it was.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Fails as replace_file would at its start, and leaves nothing behind. Errors: as there.
void check_replaceable(const std::filesystem::path& path);

}  // namespace assay::golden
