#pragma once
// The half of the contained reader that meets the file: what runs in the child process.

#include <cstddef>
#include <cstdint>

#include "golden/io/contained_reader.h"

namespace assay::golden {

// Answers of the child. `admitted` precedes `fixture`.
enum Answer : std::uint64_t { kError = 1, kLacksMemory = 2, kAdmitted = 3, kFixture = 4 };

inline constexpr std::int64_t kPathLimit = 1 << 16;

// Exit status of a child that found no memory for an answer.
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

// Bytes that the file at this path occupies: what the time to read its structure is counted by. A hole in a file costs its
// maker nothing, and is not counted. 0 if the system does not say.
std::int64_t stored_size(const char* path);

}  // namespace assay::golden
