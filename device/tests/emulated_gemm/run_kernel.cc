// Compilers of some systems define it: longjmp() then refuses a stack that lies elsewhere.
#undef _FORTIFY_SOURCE

#include "device/tests/emulated_gemm/run_kernel.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/fiber.h"

namespace assay::device::host {

Index thread_index, block_index, grid_size, block_size;
bool reversed = false;
int compute_capability = 0;
std::uint64_t blocks_begun = 0;
std::vector<Memory> in_use_before;

namespace {

bool inverted = false;  // the memory in use before

void invert(bool to) {
  if (inverted == to) return;
  inverted = to;
  for (const Memory& each : in_use_before) {
    auto* const bytes = static_cast<std::byte*>(each.begin);
    for (std::size_t i = 0; i < each.bytes; ++i) bytes[i] = ~bytes[i];
  }
}

constexpr unsigned kWarp = 32;
using Lanes = std::array<std::uint64_t, kWarp>;

// A thread of the block, with a stack of its own, which it keeps from block to block.
struct Thread : Fiber {
  using Fiber::Fiber;
  enum class Waits { no, for_warp, for_block, for_cluster } waits = Waits::no;
  bool done = true;
  std::uint64_t arrived = 0, waited = 0;  // at how many barriers of the cluster, and for how many
  std::uint64_t given = 0;                // to the exchange or barrier that it waits for
  Lanes received = {};
  std::uint64_t of_block = 0;
};

Thread* running = nullptr;
const std::function<void()>* work = nullptr;
std::uint64_t passed = 0;   // barriers of the cluster
std::deque<Thread> fibers;  // in their places

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "run_kernel: block %u, %u: %s\n", block_index.x, block_index.y, what);
  std::abort();
}

Thread& wait(Thread::Waits waits, std::uint64_t given) {
  Thread& own = *running;
  own.waits = waits;
  own.given = given;
  own.leave();
  return own;
}

// Lets threads [first, end) go on if all that are left wait for `waits`, with what all have given. Whether it did.
template <class Receive>
bool release(unsigned first, unsigned end, Thread::Waits waits, Receive receive) {
  bool any = false;
  for (unsigned t = first; t < end; ++t) {
    if (!fibers[t].done && fibers[t].waits != waits) return false;
    any = any || !fibers[t].done;
  }
  if (!any) return false;
  receive();
  for (unsigned t = first; t < end; ++t) fibers[t].waits = Thread::Waits::no;
  return true;
}

// Lets the threads of a warp go on if all that are left wait for an exchange.
bool release_warp(unsigned first, unsigned end) {
  return release(first, end, Thread::Waits::for_warp, [&] {
    Lanes all = {};
    for (unsigned t = first; t < end; ++t) all[t - first] = fibers[t].done ? 0 : fibers[t].given;
    for (unsigned t = first; t < end; ++t) fibers[t].received = all;
  });
}

bool release_block(unsigned first, unsigned end) {
  return release(first, end, Thread::Waits::for_block, [&] {
    std::uint64_t all = 0;
    for (unsigned t = first; t < end; ++t) all |= fibers[t].done ? 0 : fibers[t].given;
    for (unsigned t = first; t < end; ++t) fibers[t].of_block = all;
  });
}

// Lets the threads of a cluster that wait for it go on if all that have not ended have arrived once more.
bool release_cluster(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    if (!fibers[t].done && fibers[t].arrived == passed) return false;
  }
  ++passed;
  bool any = false;
  for (unsigned t = 0; t < threads; ++t) {
    if (fibers[t].done || fibers[t].waits != Thread::Waits::for_cluster) continue;
    fibers[t].waits = Thread::Waits::no;
    any = true;
  }
  return any;
}

// Runs each thread of a warp that waits for nothing to where it waits or ends. `block` is the first thread of the block.
void run_threads(unsigned block, unsigned first, unsigned end) {
  for (unsigned i = first; i < end; ++i) {
    const unsigned t = reversed ? end - 1 - (i - first) : i;
    if (fibers[t].done || fibers[t].waits != Thread::Waits::no) continue;
    thread_index.x = t - block;
    running = &fibers[t];
    running->enter();
  }
}

// Runs a warp as far as it comes without the others: to a barrier of the block, or to its end.
void run_warp(unsigned block, unsigned first, unsigned end) {
  do {
    run_threads(block, first, end);
  } while (release_warp(first, end));
}

// A thread of each block in turn.
void run_thread() {
  for (;;) {
    (*work)();
    running->done = true;
    running->leave();
  }
}

// Runs the threads of a block as far as they come without the other blocks of the cluster.
void run_block(unsigned first, unsigned end) {
  do {
    const unsigned warps = (end - first + kWarp - 1) / kWarp;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned warp = first + (reversed ? warps - 1 - i : i) * kWarp;
      run_warp(first, warp, std::min(warp + kWarp, end));
    }
  } while (release_block(first, end));
}

bool have_ended(unsigned first, unsigned end) {
  return std::all_of(fibers.begin() + first, fibers.begin() + end, [](const Thread& each) { return each.done; });
}

// `size` blocks, the first of which has the number `first_block`.
void run_cluster(unsigned first_block, unsigned size, unsigned threads, std::size_t shared_bytes) {
  for (unsigned t = 0; t < size * threads; ++t) {
    fibers[t].done = false;
    fibers[t].waits = Thread::Waits::no;
    fibers[t].arrived = fibers[t].waited = 0;
  }
  passed = 0;
  bool first_time = true;
  do {
    for (unsigned i = 0; i < size; ++i) {
      const unsigned rank = reversed ? size - 1 - i : i, block = first_block + rank;
      const unsigned first = rank * threads, end = first + threads;
      if (!first_time && have_ended(first, end)) continue;
      block_index = {block % grid_size.x, block / grid_size.x, 0};
      rank_in_cluster = rank;
      if (first_time) {
        ++blocks_begun;
        begin_dynamic_shared(rank, shared_bytes);
      }
      run_block(first, end);
      if (have_ended(first, end)) end_dynamic_shared(rank);
    }
    first_time = false;
  } while (release_cluster(size * threads));
  if (!have_ended(0, size * threads)) fail("threads wait for different barriers or exchanges");
}

}  // namespace

void wait_for_block() { wait(Thread::Waits::for_block, 0); }
std::uint64_t or_of_block(std::uint64_t value) { return wait(Thread::Waits::for_block, value).of_block; }
const std::uint64_t* exchange(std::uint64_t value) { return wait(Thread::Waits::for_warp, value).received.data(); }

void wait_for_work_before() { invert(false); }

void arrive_at_cluster() {
  if (running->waited != running->arrived++)
    fail("a thread arrives at a barrier of the cluster before it waited for the last one");
}
void wait_for_cluster() {
  if (running->waited == running->arrived) fail("a thread waits for a barrier of the cluster at which it did not arrive");
  if (running->arrived > passed) wait(Thread::Waits::for_cluster, 0);
  ++running->waited;
}

std::uint32_t address_in_cluster(std::uint32_t address, unsigned rank) { return address_in_block(address, rank); }

void run_kernel(const Launch& launch, const std::function<void()>& thread) {
  while (fibers.size() < std::size_t{launch.cluster} * launch.threads) fibers.emplace_back(run_thread);
  work = &thread;
  if (launch.cooperative) fail("blocks that wait for one another run one after another here");
  grid_size = launch.grid;
  block_size.x = launch.threads;
  const unsigned clusters = launch.grid.x * launch.grid.y / launch.cluster;
  invert(launch.early);
  for (unsigned i = 0; i < clusters; ++i) {
    run_cluster((reversed ? clusters - 1 - i : i) * launch.cluster, launch.cluster, launch.threads, launch.shared_bytes);
  }
  invert(false);
}

void run_kernel(Index grid, unsigned threads, const std::function<void()>& thread) { run_kernel({grid, threads}, thread); }

}  // namespace assay::device::host
