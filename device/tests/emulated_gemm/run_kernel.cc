// Compilers of some systems define it: longjmp() then refuses a stack that lies elsewhere.
#undef _FORTIFY_SOURCE

#include "device/tests/emulated_gemm/run_kernel.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#include "device/tests/emulated_gemm/dynamic_shared.h"

// The thread sanitizer has to be informed of each change of the stack.
#ifdef __SANITIZE_THREAD__
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
}
#else
namespace {
void* __tsan_get_current_fiber() { return nullptr; }
void* __tsan_create_fiber(unsigned) { return nullptr; }
void __tsan_switch_to_fiber(void*, unsigned) {}
}  // namespace
#endif

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

// Sanitizers follow swapcontext() alone. Without them it enters each stack once, and then jumps change it: they make no system call.
// With ASSAY_KEEP_STACK_CHECKS this file is compiled without a sanitizer, and its jumps are the compiler's own: the address sanitizer
// knows no other way to leave a stack after which it still checks the arrays there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kJumps = false;
#else
constexpr bool kJumps = true;
#endif
#ifdef ASSAY_KEEP_STACK_CHECKS
using Place = void* [5];
constexpr std::size_t kStack = 1024 * 1024;  // no optimization, and space between variables
#define ASSAY_SET_PLACE __builtin_setjmp
#define ASSAY_GO_ON __builtin_longjmp
#else
using Place = jmp_buf;
constexpr std::size_t kStack = 128 * 1024;
#define ASSAY_SET_PLACE _setjmp
#define ASSAY_GO_ON _longjmp
#endif

// Goes on at `to`, on the stack of that, or begins where `first` does, until another call does so with `from`. Any memory may have changed
// then, which the compiler does not see.
[[gnu::noinline]] void jump(Place& from, Place& to, const ucontext_t* first) {
  if (ASSAY_SET_PLACE(from) == 0) {
    if (first != nullptr) setcontext(first);
    ASSAY_GO_ON(to, 1);
  }
  asm volatile("" ::: "memory");
}

// A thread of the block, with a stack of its own, which it keeps from block to block.
struct Fiber {
  ucontext_t context;
  Place place;
  bool begun = false;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  void* sanitized = nullptr;  // lives as long as the program
  enum class Waits { no, for_warp, for_block, for_cluster } waits = Waits::no;
  bool done = true;
  std::uint64_t arrived = 0, waited = 0;  // at how many barriers of the cluster, and for how many
  std::uint64_t given = 0;                // to the exchange or barrier that it waits for
  Lanes received = {};
  std::uint64_t of_block = 0;
};

ucontext_t scheduler;
Place scheduler_place;
void* sanitized_scheduler = nullptr;
Fiber* running = nullptr;
const std::function<void()>* work = nullptr;
std::uint64_t passed = 0;  // barriers of the cluster
std::deque<Fiber> fibers;  // in their places: a context may point into itself

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "run_kernel: block %u, %u: %s\n", block_index.x, block_index.y, what);
  std::abort();
}

void leave() {
  Fiber& own = *running;
  __tsan_switch_to_fiber(sanitized_scheduler, 0);
  if (kJumps) {
    jump(own.place, scheduler_place, nullptr);
  } else {
    swapcontext(&own.context, &scheduler);
  }
}

void enter(Fiber& fiber) {
  running = &fiber;
  __tsan_switch_to_fiber(fiber.sanitized, 0);
  if (kJumps) {
    jump(scheduler_place, fiber.place, fiber.begun ? nullptr : &fiber.context);
    fiber.begun = true;
  } else {
    swapcontext(&scheduler, &fiber.context);
  }
}

Fiber& wait(Fiber::Waits waits, std::uint64_t given) {
  Fiber& own = *running;
  own.waits = waits;
  own.given = given;
  leave();
  return own;
}

// Lets threads [first, end) go on if all that are left wait for `waits`, with what all have given. Whether it did.
template <class Receive>
bool release(unsigned first, unsigned end, Fiber::Waits waits, Receive receive) {
  bool any = false;
  for (unsigned t = first; t < end; ++t) {
    if (!fibers[t].done && fibers[t].waits != waits) return false;
    any = any || !fibers[t].done;
  }
  if (!any) return false;
  receive();
  for (unsigned t = first; t < end; ++t) fibers[t].waits = Fiber::Waits::no;
  return true;
}

// Lets the threads of a warp go on if all that are left wait for an exchange.
bool release_warp(unsigned first, unsigned end) {
  return release(first, end, Fiber::Waits::for_warp, [&] {
    Lanes all = {};
    for (unsigned t = first; t < end; ++t) all[t - first] = fibers[t].done ? 0 : fibers[t].given;
    for (unsigned t = first; t < end; ++t) fibers[t].received = all;
  });
}

bool release_block(unsigned first, unsigned end) {
  return release(first, end, Fiber::Waits::for_block, [&] {
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
    if (fibers[t].done || fibers[t].waits != Fiber::Waits::for_cluster) continue;
    fibers[t].waits = Fiber::Waits::no;
    any = true;
  }
  return any;
}

// Runs each thread of a warp that waits for nothing to where it waits or ends. `block` is the first thread of the block.
void run_threads(unsigned block, unsigned first, unsigned end) {
  for (unsigned i = first; i < end; ++i) {
    const unsigned t = reversed ? end - 1 - (i - first) : i;
    if (fibers[t].done || fibers[t].waits != Fiber::Waits::no) continue;
    thread_index.x = t - block;
    enter(fibers[t]);
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
    leave();
  }
}

void make_stack(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, run_thread, 0);
  fiber.sanitized = __tsan_create_fiber(0);
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
  return std::all_of(fibers.begin() + first, fibers.begin() + end, [](const Fiber& each) { return each.done; });
}

// `size` blocks, the first of which has the number `first_block`.
void run_cluster(unsigned first_block, unsigned size, unsigned threads, std::size_t shared_bytes) {
  for (unsigned t = 0; t < size * threads; ++t) {
    fibers[t].done = false;
    fibers[t].waits = Fiber::Waits::no;
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

void wait_for_block() { wait(Fiber::Waits::for_block, 0); }
std::uint64_t or_of_block(std::uint64_t value) { return wait(Fiber::Waits::for_block, value).of_block; }
const std::uint64_t* exchange(std::uint64_t value) { return wait(Fiber::Waits::for_warp, value).received.data(); }

void wait_for_work_before() { invert(false); }

void arrive_at_cluster() {
  if (running->waited != running->arrived++)
    fail("a thread arrives at a barrier of the cluster before it waited for the last one");
}
void wait_for_cluster() {
  if (running->waited == running->arrived) fail("a thread waits for a barrier of the cluster at which it did not arrive");
  if (running->arrived > passed) wait(Fiber::Waits::for_cluster, 0);
  ++running->waited;
}

void run_kernel(const Launch& launch, const std::function<void()>& thread) {
  while (fibers.size() < std::size_t{launch.cluster} * launch.threads) make_stack(fibers.emplace_back());
  work = &thread;
  sanitized_scheduler = __tsan_get_current_fiber();
  grid_size = launch.grid;
  block_size.x = launch.threads;
  const unsigned clusters = launch.grid.x * launch.grid.y / launch.cluster;
  invert(launch.early);
  for (unsigned i = 0; i < clusters; ++i) {
    run_cluster((reversed ? clusters - 1 - i : i) * launch.cluster, launch.cluster, launch.threads, launch.shared_bytes);
  }
  invert(false);
  in_use_before.clear();
}

void run_kernel(Index grid, unsigned threads, const std::function<void()>& thread) { run_kernel({grid, threads}, thread); }

}  // namespace assay::device::host
