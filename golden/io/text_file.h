#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace assay::golden {

inline constexpr std::int64_t kLargestText = std::int64_t{64} << 20;

// The bytes of a regular file of at most `limit` bytes. Errors: FixtureError if it is larger, another kind of file (a pipe
// would wait, a device never end), or cannot be read.
std::string read_text_file(const std::filesystem::path& path, std::int64_t limit = kLargestText);

}  // namespace assay::golden
