#pragma once
// The part of the contained reader that runs in the child process and reads the file.

#include <cstddef>
#include <cstdint>

#include "golden/io/contained_reader.h"

namespace assay::golden {

// Answers of the child. `admitted` precedes `fixture`.
enum Answer : std::uint64_t { kError = 1, kLacksMemory = 2, kAdmitted = 3, kFixture = 4 };

inline constexpr std::int64_t kPathLimit = 1 << 16;

// Exit status of a child without memory for an answer.
inline constexpr int kLackedMemoryStatus = 9;

// Memory that both processes share: the object that the child works on, which outlives the child.
struct WorkingOn {
  static constexpr std::size_t kSize = 4096;
  char object[kSize];  // ends with a NUL, unless the child was made to write otherwise
};

// Answers requests on the socket `channel` until it is closed. `spare` is the address space that it may take beyond tensors.
[[noreturn]] void serve_reading(int channel, const Containment& containment, std::int64_t spare, WorkingOn& working_on);

// Wall-clock seconds for `bytes` of a file or of tensors.
double time_for(const Containment& containment, std::int64_t bytes);

// Bytes that the file at this path occupies, from which the time to read its structure is computed. Holes do not count: they
// cost nothing to create. 0 if unknown.
std::int64_t stored_size(const char* path);

}  // namespace assay::golden
