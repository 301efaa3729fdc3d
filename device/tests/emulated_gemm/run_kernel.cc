#include "device/tests/emulated_gemm/run_kernel.h"

#include <ucontext.h>

#include <cstddef>
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

Index thread_index, block_index, grid_size;

namespace {

constexpr std::size_t kStack = 128 * 1024;

// A thread of the block, with a stack of its own.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  void* sanitized = nullptr;  // lives as long as the program
  bool done = true;
};

ucontext_t scheduler;
void* sanitized_scheduler = nullptr;
Fiber* running = nullptr;
const std::function<void()>* work = nullptr;

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

void run_thread() {
  (*work)();
  running->done = true;
  leave();
}

}  // namespace

void wait_for_block() { leave(); }

void run_kernel(unsigned blocks, unsigned threads, const std::function<void()>& thread) {
  static std::vector<Fiber> fibers;
  if (fibers.size() < threads) fibers.resize(threads);
  work = &thread;
  sanitized_scheduler = __tsan_get_current_fiber();
  grid_size.x = blocks;
  for (unsigned block = 0; block < blocks; ++block) {
    block_index.x = block;
    for (unsigned t = 0; t < threads; ++t) {
      Fiber& fiber = fibers[t];
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, run_thread, 0);
      if (fiber.sanitized == nullptr) fiber.sanitized = __tsan_create_fiber(0);
      fiber.done = false;
    }
    for (bool any = true; any;) {  // once around: to the next barrier
      any = false;
      for (unsigned t = 0; t < threads; ++t) {
        if (fibers[t].done) continue;
        thread_index.x = t;
        enter(fibers[t]);
        any = any || !fibers[t].done;
      }
    }
  }
}

}  // namespace assay::device::host
