#include "device/tests/emulated_gemm/run_kernel.h"

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

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

namespace {

constexpr std::size_t kStack = 128 * 1024;

constexpr unsigned kWarp = 32;
using Lanes = std::array<std::uint64_t, kWarp>;

// A thread of the block, with a stack of its own.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  void* sanitized = nullptr;  // lives as long as the program
  enum class Waits { no, for_warp, for_block } waits = Waits::no;
  bool done = true;
  std::uint64_t given = 0;  // to the exchange or barrier that it waits for
  Lanes received = {};
  std::uint64_t of_block = 0;
};

ucontext_t scheduler;
void* sanitized_scheduler = nullptr;
Fiber* running = nullptr;
const std::function<void()>* work = nullptr;
std::vector<Fiber> fibers;

void leave() {
  Fiber& own = *running;
  __tsan_switch_to_fiber(sanitized_scheduler, 0);
  swapcontext(&own.context, &scheduler);
}

void enter(Fiber& fiber) {
  running = &fiber;
  __tsan_switch_to_fiber(fiber.sanitized, 0);
  swapcontext(&scheduler, &fiber.context);
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

bool release_warps(unsigned threads) {
  bool any = false;
  for (unsigned first = 0; first < threads; first += kWarp) {
    const unsigned end = first + kWarp < threads ? first + kWarp : threads;
    any |= release(first, end, Fiber::Waits::for_warp, [&] {
      Lanes all = {};
      for (unsigned t = first; t < end; ++t) all[t - first] = fibers[t].done ? 0 : fibers[t].given;
      for (unsigned t = first; t < end; ++t) fibers[t].received = all;
    });
  }
  return any;
}

bool release_block(unsigned threads) {
  return release(0, threads, Fiber::Waits::for_block, [&] {
    std::uint64_t all = 0;
    for (unsigned t = 0; t < threads; ++t) all |= fibers[t].done ? 0 : fibers[t].given;
    for (unsigned t = 0; t < threads; ++t) fibers[t].of_block = all;
  });
}

// Runs each thread that waits for nothing to where it waits or ends. Whether any thread is left.
bool run_threads(unsigned threads) {
  bool left = false;
  for (unsigned t = 0; t < threads; ++t) {
    if (!fibers[t].done && fibers[t].waits == Fiber::Waits::no) {
      thread_index.x = t;
      enter(fibers[t]);
    }
    left = left || !fibers[t].done;
  }
  return left;
}

void run_thread() {
  (*work)();
  running->done = true;
  leave();
}

void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = fibers[t];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_thread, 0);
    if (fiber.sanitized == nullptr) fiber.sanitized = __tsan_create_fiber(0);
    fiber.done = false;
    fiber.waits = Fiber::Waits::no;
  }
  while (run_threads(threads)) {
    const bool warps = release_warps(threads);
    if (!release_block(threads) && !warps) {
      std::fprintf(stderr, "run_kernel: threads of block %u, %u wait for different barriers or exchanges\n", block_index.x,
                   block_index.y);
      std::abort();
    }
  }
}

}  // namespace

void wait_for_block() { wait(Fiber::Waits::for_block, 0); }
std::uint64_t or_of_block(std::uint64_t value) { return wait(Fiber::Waits::for_block, value).of_block; }
const std::uint64_t* exchange(std::uint64_t value) { return wait(Fiber::Waits::for_warp, value).received.data(); }

void run_kernel(Index grid, unsigned threads, const std::function<void()>& thread) {
  if (fibers.size() < threads) fibers.resize(threads);
  work = &thread;
  sanitized_scheduler = __tsan_get_current_fiber();
  grid_size = grid;
  block_size.x = threads;
  for (unsigned block = 0; block < grid.x * grid.y; ++block) {
    block_index = {block % grid.x, block / grid.x, 0};
    run_block(threads);
  }
}

}  // namespace assay::device::host
