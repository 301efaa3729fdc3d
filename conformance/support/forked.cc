#include "conformance/support/forked.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "conformance/support/interrupt.h"

namespace assay::conformance {

namespace {

ForkedMemory* last_shared = nullptr;

}  // namespace

ForkedMemory::ForkedMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)), before_(last_shared) {
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
  if (before_ != nullptr) before_->behind_ = this;
  last_shared = this;
}

ForkedMemory::~ForkedMemory() {
  (behind_ == nullptr ? last_shared : behind_->before_) = before_;
  if (before_ != nullptr) before_->behind_ = behind_;
  munmap(data_, bytes_);
}

void ForkedMemory::make_all_read_only() {
  for (const ForkedMemory* each = last_shared; each != nullptr; each = each->before_)
    mprotect(each->data_, each->bytes_, PROT_READ);
}

namespace {

rlim_t address_space_in_use() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void set_timer(__itimer_which_t which, double seconds) {
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - whole) * 1e6);
  setitimer(which, &timer, nullptr);
}

struct Counters {
  std::atomic<std::int64_t> next, done;
};

}  // namespace

void leave_no_core_file() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

int make_child(std::size_t more_bytes) {
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw ProcessError("no further process can be made");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) signal(each, SIG_IGN);  // the parent's to handle
  leave_no_core_file();
  if (more_bytes > 0) {
    const rlim_t most = address_space_in_use() + more_bytes;
    const rlimit memory{most, most};
    setrlimit(RLIMIT_AS, &memory);
  }
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    if (nowhere > STDERR_FILENO) close(nowhere);
  }
  return 0;
}

bool ended_well(int child) {
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(child, &status, 0);
  } while (got < 0 && errno == EINTR);
  return got == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void limit_time(double seconds) {
  set_timer(ITIMER_PROF, seconds);
  set_timer(ITIMER_REAL, seconds == 0 ? 0 : 30 + 20 * seconds);
}

void fix_addresses() {
  constexpr unsigned long kAsk = 0xffff'ffff;
  const int now = personality(kAsk);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  if (!words.empty() && (personality(kAsk) & ADDR_NO_RANDOMIZE) != 0) execv("/proc/self/exe", arguments.data());
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

namespace {

// Shows progress from a process of its own: this one's memory then does not depend on how long anything took.
pid_t begin_telling(const Counters& counters, std::int64_t count, const std::function<void(std::int64_t)>& progress) {
  if (!progress) return -1;
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (getppid() == parent && counters.done < count && !interrupted()) {
    progress(counters.done);
    usleep(50'000);
  }
  progress(counters.done);
  _exit(0);
}

}  // namespace

bool in_processes(std::int64_t count, int jobs, const std::function<void(std::int64_t)>& work,
                  const std::function<void(std::int64_t)>& progress) {
  const ForkedArray<Counters> shared(1);
  Counters& counters = shared[0];
  const ForkedArray<pid_t> running(static_cast<std::size_t>(jobs));
  std::size_t begun = 0, left = 0;
  for (; begun < running.size() && static_cast<std::int64_t>(begun) < count; ++begun, ++left) {
    const pid_t child = make_child(0);
    if (child > 0) {
      running[begun] = child;
      continue;
    }
    try {
      for (std::int64_t i = counters.next++; i < count; i = counters.next++) {
        work(i);
        ++counters.done;
      }
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  const pid_t telling = begin_telling(counters, count, progress);
  int failure = 0;
  while (left > 0 && failure == 0 && !interrupted()) {
    int status = 0;
    if (waitpid(running[left - 1], &status, WNOHANG) == 0) {
      usleep(10'000);
      continue;
    }
    running[--left] = 0;
    if (status != 0) failure = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
  }
  for (std::size_t i = 0; i < begun; ++i) {
    if (running[i] == 0) continue;
    kill(running[i], SIGKILL);
    waitpid(running[i], nullptr, 0);
  }
  if (telling > 0) {
    if (counters.done < count) kill(telling, SIGKILL);
    waitpid(telling, nullptr, 0);
  }
  if (failure != 0)
    throw ProcessError(fmt::format("a process of this program ended early{}",
                                   failure > 0 ? fmt::format(", by signal {}", failure) : std::string()));
  return counters.done == count;
}

}  // namespace assay::conformance
