#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace assay::golden {

// Writes `bytes` to `path`: into a file beside it that then takes its name, so that `path` never holds a part.
// A symbolic link stays one: the file it points to is replaced. Errors: FixtureError if it cannot be written (no
// permission, disk full), or if there is something other than a file; `path` is then as it was.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace assay::golden
