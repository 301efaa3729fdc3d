#include "conformance/support/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace assay::conformance {
namespace {

std::atomic<std::int64_t> first = 0;  // milliseconds on the monotonic clock; 0: none yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void set(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void handle(int signal) {
  constexpr std::int64_t kOneSignal = 500;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
  std::int64_t none = 0;
  if (first.compare_exchange_strong(none, at) || at - none < kOneSignal) return;
  set(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void catch_interrupts() {
  struct sigaction caught {};
  caught.sa_handler = handle;
  caught.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // A signal that nohup(1) ignores stays ignored.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &caught, nullptr);
  }
  for (const int signal : {SIGPIPE, SIGXFSZ}) set(signal, SIG_IGN);
  set(SIGCHLD, SIG_DFL);  // workers are waited for
}

void end_by_broken_pipe() {
  set(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  _exit(128 + SIGPIPE);
}

bool interrupted() { return first.load(std::memory_order_relaxed) != 0; }

}  // namespace assay::conformance
