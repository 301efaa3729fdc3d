#pragma once

namespace assay::conformance {

// Call first in main(). Where the address space of the process is limited (ulimit -v), the C library takes memory from one
// arena: with one a thread, each reserves 64 MiB, and once no more can be reserved every allocation becomes a system call
// of its own, which makes the program a hundred times slower long before memory is short. And where there is no memory even
// for an exception, the program ends with exit code 9 as it does otherwise.
void prepare_for_memory_limit();

}  // namespace assay::conformance
