#pragma once
// Threads that take turns, each on a stack of its own: for one source of a program, which undefines _FORTIFY_SOURCE before anything else
// (longjmp() of some systems then refuses a stack that lies elsewhere).

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>

// The thread sanitizer has to be informed of each change of the stack.
#ifdef __SANITIZE_THREAD__
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
}
#else
namespace {
inline void* __tsan_get_current_fiber() { return nullptr; }
inline void* __tsan_create_fiber(unsigned) { return nullptr; }
inline void __tsan_switch_to_fiber(void*, unsigned) {}
}  // namespace
#endif

namespace assay::device::host {
namespace {

// Sanitizers follow swapcontext() alone. Without them it enters each stack once, and then jumps change it: they make no system call.
// With ASSAY_KEEP_STACK_CHECKS the source is compiled without a sanitizer, and its jumps are the compiler's own: the address sanitizer
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

// It stays where it is: a context may point into itself.
class Fiber {
 public:
  // Runs `main`, which never returns, when it is first entered.
  explicit Fiber(void (*main)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = kStack;
    context_.uc_link = nullptr;
    makecontext(&context_, main, 0);
    sanitized_ = __tsan_create_fiber(0);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // By the one that is no fiber: runs it until it leaves.
  void enter() {
    sanitized_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(sanitized_, 0);
    if (kJumps) {
      jump(place_outside, place_, begun_ ? nullptr : &context_);
      begun_ = true;
    } else {
      swapcontext(&outside, &context_);
    }
  }
  // By the fiber itself.
  void leave() {
    __tsan_switch_to_fiber(sanitized_outside, 0);
    if (kJumps) {
      jump(place_, place_outside, nullptr);
    } else {
      swapcontext(&context_, &outside);
    }
  }

 private:
  inline static ucontext_t outside;
  inline static Place place_outside;
  inline static void* sanitized_outside = nullptr;

  ucontext_t context_;
  Place place_;
  bool begun_ = false;
  std::unique_ptr<std::byte[]> stack_ = std::make_unique_for_overwrite<std::byte[]>(kStack);
  void* sanitized_ = nullptr;  // lives as long as the program
};

}  // namespace
}  // namespace assay::device::host
