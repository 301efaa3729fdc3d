#include "conformance/worker/wire.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace assay::conformance::worker {

std::string protocol() {
  return "1/" + std::to_string(sizeof(Channel)) + "/" + std::to_string(static_cast<int>(Function::count)) + "/" +
         std::to_string(sizeof(assay_numerics)) + "/" + std::to_string(sizeof(assay_backend));
}

std::string name_of(Function function) {
  static constexpr const char* kNames[] = {"",
                                           "",
                                           "",
                                           "open",
                                           "close",
                                           "last_error",
                                           "device_info",
                                           "allocate",
                                           "release",
                                           "copy_to_device",
                                           "copy_to_host",
                                           "fill",
                                           "stream_create",
                                           "stream_destroy",
                                           "synchronize",
                                           "event_create",
                                           "event_destroy",
                                           "event_record",
                                           "event_elapsed",
                                           "capture_begin",
                                           "capture_end",
                                           "graph_launch",
                                           "graph_destroy",
                                           "supports",
                                           "numerics",
                                           "list_algorithms",
                                           "list_axes",
                                           "set_axis",
                                           "workspace_bytes",
                                           "execute",
                                           "",
                                           ""};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(Function::count));
  if (function == Function::load) return "the loading of the library";
  if (function == Function::unload) return "the unloading of the library";
  if (function == Function::none || function >= Function::questions) return "no call";
  return std::string(kNames[static_cast<std::size_t>(function)]) + "()";
}

namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* at_most) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, at_most, nullptr, 0);
}

}  // namespace

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t old, std::chrono::nanoseconds at_most) {
  if (at_most.count() <= 0) return;
  const timespec limit{static_cast<time_t>(at_most.count() / 1'000'000'000), static_cast<long>(at_most.count() % 1'000'000'000)};
  futex(word, FUTEX_WAIT, old, &limit);
}

void wake(std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace assay::conformance::worker
