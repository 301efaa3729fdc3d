#pragma once
// Memory for processes in which a mutant is planted: each allocation ends at a page that can be neither read nor written, and holds
// the same bytes in every run. A mutant that reads or writes beyond an array then ends its process, as does one that writes in front of
// it, and what it finds there depends on no machine. The program's operator new asks here first (conformance/program/guarded_new.cc).

#include <cstddef>

namespace assay::conformance {

// Address space that guard_allocations() takes.
constexpr std::size_t kGuardedBytes = std::size_t{2} << 30;

// From now on allocations of this process are guarded; to be called once, by its only thread. Without room for it nothing changes.
void guard_allocations();

// Null where allocations are not guarded, or where no room is left. Thread-safe, as is the next one.
void* guarded_allocate(std::size_t bytes);
// Whether `data` was guarded; then it is released. Ends the process where bytes beside it were written.
bool guarded_release(void* data);

}  // namespace assay::conformance
