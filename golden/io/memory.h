#pragma once

#include <cstdint>

namespace assay::golden {

// Bytes of address space in use, or -1 where the system does not say.
std::int64_t address_space_used();

// Bytes of address space that this process may still take: INT64_MAX where it is not limited (RLIMIT_AS).
std::int64_t address_space_left();

// Bytes of memory that this process may still fill without another being ended for it: the least of what the system has
// available and what its control group (version 2) leaves. INT64_MAX where neither says.
std::int64_t memory_left();

}  // namespace assay::golden
