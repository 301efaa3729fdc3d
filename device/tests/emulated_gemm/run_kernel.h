#pragma once
// A kernel on the host: the threads of a block one after another, each up to the next barrier. For kernels without warp operations
// and dynamic shared memory, all of whose threads that are left come to the same barriers.

#include <functional>

namespace assay::device::host {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Of the thread that runs.
extern Index thread_index, block_index, grid_size;

// The barrier of a block.
void wait_for_block();

// Calls `thread` once for each thread of each block.
void run_kernel(unsigned blocks, unsigned threads, const std::function<void()>& thread);

}  // namespace assay::device::host
