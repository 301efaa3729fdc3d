#include "golden/io/memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace assay::golden {
namespace {

// The beginning of a system file, read into `room`; empty if it cannot be read. Allocates nothing.
template <std::size_t kSize>
std::string_view beginning(const char* path, char (&room)[kSize]) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, room, kSize);
  ::close(file);
  return {room, size > 0 ? static_cast<std::size_t>(size) : 0};
}

// The first number in `text`, or -1: "max" in a control group is no limit.
std::int64_t number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::int64_t available_in_system() {
  char room[2048];
  const std::string_view text = beginning("/proc/meminfo", room);
  constexpr std::string_view kName = "MemAvailable:";
  const std::size_t at = text.find(kName);
  const std::int64_t kilobytes = at == text.npos ? -1 : number_in(text.substr(at + kName.size()));
  return kilobytes < 0 ? INT64_MAX : kilobytes * 1024;
}

std::int64_t left_in_group() {
  char most[64], now[64];
  const std::int64_t limit = number_in(beginning("/sys/fs/cgroup/memory.max", most));
  const std::int64_t used = number_in(beginning("/sys/fs/cgroup/memory.current", now));
  return limit < 0 || used < 0 ? INT64_MAX : std::max<std::int64_t>(limit - used, 0);
}

}  // namespace

std::int64_t address_space_used() {
  char room[64];
  const std::int64_t pages = number_in(beginning("/proc/self/statm", room));
  return pages < 0 ? -1 : pages * ::sysconf(_SC_PAGESIZE);
}

std::int64_t address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > rlim_t{INT64_MAX})
    return INT64_MAX;
  return std::max<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) - std::max<std::int64_t>(address_space_used(), 0), 0);
}

std::int64_t memory_left() { return std::min(available_in_system(), left_in_group()); }

}  // namespace assay::golden
