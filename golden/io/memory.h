#pragma once

#include <cstdint>

namespace assay::golden {

// Bytes of address space in use, or -1 if unknown.
std::int64_t address_space_used();

// Bytes of address space that this process may still take: INT64_MAX where it is not limited (RLIMIT_AS).
std::int64_t address_space_left();

// Bytes of memory that this process may still use before the system kills a process: the smaller of the available memory of
// the system and of its control group (version 2). INT64_MAX if both are unknown.
std::int64_t memory_left();

}  // namespace assay::golden
