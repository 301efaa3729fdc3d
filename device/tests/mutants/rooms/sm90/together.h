#pragma once
// A kernel on the host whose threads wait for one another in any way: together.cc is another run_kernel() (run_kernel.h). All blocks of the
// grid have begun; a thread runs until it waits, and of those that can go on always the first one in a fixed order does, at once when it
// can: one that an instruction lets go on, before the thread of that instruction if it comes first. So each thread is as far ahead of the
// later ones as barriers let it be, and what is ordered by luck alone comes in the wrong order:
//
//   turns              first             then                    last
//   by_block           the first block   its first warp          the first lane
//   by_lane            the first lane    the last block          its last warp
//
// A launch ends the program at a deadlock, and where lanes of a warp come to different exchanges.

#include <cstdint>

namespace assay::device::host {

enum class Turns { by_block, by_lane };
extern Turns turns;  // of the next launch

// --- for what threads wait for

unsigned running_thread();  // of all blocks
void wait_to_be_woken();    // until wake() of another thread, or of the copy engine
void wake(unsigned thread);
void give_way();  // to a thread that comes first and can go on
[[noreturn]] void fail(const char* what);

// The place of the running thread's block among all that run, and in its cluster.
unsigned slot();
unsigned cluster_ctarank();

// Barriers that all threads of the running thread's block or cluster, or of the grid, have passed.
std::uint64_t block_barriers_passed();
std::uint64_t cluster_barriers_passed();
std::uint64_t grid_barriers_passed();

// An instruction `.sync.aligned`: all lanes of the warp come to it. PTX ISA, ".aligned": all threads of the warp execute the same
// instruction; what a branch of some lanes leads to is undefined. Here lanes are apart when some of them have waited for barriers in
// memory (noted by note_wait()) that others have not, since all last met.
void meet_aligned(const char* instruction);
void note_wait();

}  // namespace assay::device::host
