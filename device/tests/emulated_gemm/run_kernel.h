#pragma once
// A kernel on the host: the warps of a block one after another, each as far as it comes, up to the next barrier of the block; the
// threads of a warp one after another, each up to its next exchange. A warp that needs a barrier to wait for another finds nothing done.
// The blocks of a cluster run one after another too, each up to the next barrier of the cluster; their shared memory has to be dynamic
// (dynamic_shared.h). For kernels all of whose threads that are left come to the same barriers, and all lanes of a warp to the same
// exchanges. Others end the program with a message.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay::device::host {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Of the thread that runs.
extern Index thread_index, block_index, grid_size, block_size;

// Whether blocks, warps and threads run from the last to the first. No result may depend on it.
extern bool reversed;

// Of the device that the host stands for, 90 for 9.0. 0: there is none, and questions about it fail.
extern int compute_capability;

// Counts the blocks that have run or run now, of all kernels.
extern std::uint64_t blocks_begun;

// The barrier of a block.
void wait_for_block();
// The same, with a value of each thread: the or of those of all threads that have not ended.
std::uint64_t or_of_block(std::uint64_t value);

// Gives `value` to the other lanes of the warp. The result has those of all its lanes, by lane; of lanes that have ended 0. It is
// valid until the thread's next exchange.
const std::uint64_t* exchange(std::uint64_t value);

// The two halves of a barrier of the cluster. Threads that have ended count as arrived.
void arrive_at_cluster();
void wait_for_cluster();

// An address in shared memory (dynamic_shared.h) at the same place in block `rank` of the cluster.
std::uint32_t address_in_cluster(std::uint32_t address, unsigned rank);

// The barrier of all blocks of a cooperative launch: mutants/rooms/sm90/together.cc alone has it.
void wait_for_grid();

struct Launch {
  Index grid;
  unsigned threads = 1;
  std::size_t shared_bytes = 0;  // dynamic
  unsigned cluster = 1;          // blocks, neighbours in x
  bool cooperative = false;      // its blocks may wait for one another, as wait_for_grid() says
  bool early = false;            // may begin before the work before it has ended (programmatic stream serialization)
};

// Memory that the work before a launch may still write or read. A kernel that begins early finds each byte of it inverted until one
// of its threads waits, and what it wrote there until then is inverted too. It is of each launch until it is cleared: the kernels
// of a call come one after another, and each of them may begin before the one before has ended.
struct Memory {
  void* begin;
  std::size_t bytes;
};
extern std::vector<Memory> in_use_before;

// In a kernel that begins early: the work before it has ended.
void wait_for_work_before();

// Calls `thread` once for each thread of each block of a grid in x and y.
void run_kernel(const Launch& launch, const std::function<void()>& thread);
void run_kernel(Index grid, unsigned threads, const std::function<void()>& thread);

}  // namespace assay::device::host
