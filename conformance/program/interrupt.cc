#include "conformance/program/interrupt.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace assay::conformance {
namespace {

std::atomic<std::int64_t> first = 0;  // milliseconds on the monotonic clock; 0: none yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void handle(int signal) {
  constexpr std::int64_t kOneSignal = 500;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t at = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
  std::int64_t none = 0;
  if (first.compare_exchange_strong(none, at) || at - none < kOneSignal) return;
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  raise(signal);
}

}  // namespace

void catch_interrupts() {
  struct sigaction caught {};
  caught.sa_handler = handle;
  caught.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // What nohup(1) has set to be ignored stays so.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &caught, nullptr);
  }
  // Workers are waited for, which needs the default.
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &plain, nullptr);
}

bool interrupted() { return first.load(std::memory_order_relaxed) != 0; }

}  // namespace assay::conformance
