#pragma once
// Shared memory whose size a launch decides, of each block of a cluster: for run_kernel.h.

#include <cstddef>
#include <cstdint>

namespace assay::device::host {

inline constexpr unsigned kMostInCluster = 8;
inline constexpr std::size_t kSharedAlignment = 16;

// Each byte of shared memory when a block begins, where blocks run in reverse order; otherwise 0xFF.
inline unsigned char found_in_reverse = 0x5A;

// The memory of a block, for all from the first to the last of its threads. A block begins with bytes that it may not count on, and
// there is a page behind its memory that nothing may touch.
void begin_dynamic_shared(unsigned rank, std::size_t bytes);
// Also: ends the program if the block stored before its memory.
void end_dynamic_shared(unsigned rank);

// Whose memory dynamic_shared() is.
extern unsigned rank_in_cluster;
void* dynamic_shared();

// An address of the shared memory of a cluster: as instructions take it, of dynamic_shared(), the same place in the memory of
// another block, what lies there, and a store there. A block that has not begun, or has ended, has no memory: the program ends, as it does
// where the place is not in the memory of the block.
std::uint32_t shared_address(const void* place);
std::uint32_t address_in_block(std::uint32_t address, unsigned rank);
void* at_address(std::uint32_t address, std::size_t bytes);
void store_at_address(std::uint32_t address, const void* value, std::size_t bytes);

}  // namespace assay::device::host
