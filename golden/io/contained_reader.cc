#include "golden/io/contained_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

#include "golden/io/channel.h"
#include "golden/io/hdf5_handle.h"
#include "reference/support/error.h"

namespace assay::golden {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr std::int64_t kSpareAddressSpace = std::int64_t{1} << 30;
constexpr double kBytesPerSecond = 16 << 20;
constexpr std::int64_t kPathLimit = 1 << 16;

// Answers of the child. `admitted` precedes `fixture`.
enum Answer : std::uint64_t { kError = 1, kAdmitted = 2, kFixture = 3 };

double time_for(const Containment& containment, std::uintmax_t bytes) {
  return containment.seconds + static_cast<double>(bytes) / kBytesPerSecond;
}

std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// ---- the child

// Bytes of address space in use, or -1 where the system does not tell.
std::int64_t address_space() {
  char text[64] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (size <= 0) return -1;
  return std::strtoll(text, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

void limit_address_space(std::int64_t used, std::int64_t more) {
  rlimit limit{};
  std::int64_t wanted = 0;
  if (kSanitized || used < 0 || __builtin_add_overflow(used, more, &wanted)) return;
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(wanted));
  ::setrlimit(RLIMIT_AS, &limit);
}

// The wall clock ends the child by SIGALRM should the parent be gone; the parent itself looks a little earlier.
void arm(double seconds) { ::alarm(static_cast<unsigned>(std::min(std::ceil(seconds) + 5, 1e9))); }

void confine(int log) {
  if (!kSanitized) {  // whose own handlers report what happened and end the process
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) ::signal(signal, SIG_DFL);
  }
  ::signal(SIGALRM, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_IGN);  // the parent decides what an interrupt means
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);  // a core handler that is a pipe does not look at the limit

  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(log >= 0 ? log : nowhere, STDERR_FILENO);
}

void answer_one(int channel, const std::string& path, const Containment& containment, std::int64_t used) {
  Sender sender(channel);
  arm(time_for(containment, size_of(path)));
  limit_address_space(used, kSpareAddressSpace);
  try {
    Fixture fixture = read_fixture(path, containment.limits, [&](std::int64_t bytes) {
      sender.number(kAdmitted);
      sender.number(static_cast<std::uint64_t>(bytes));
      sender.flush();
      arm(time_for(containment, static_cast<std::uintmax_t>(bytes)));
      std::int64_t needed = 0;
      if (!__builtin_mul_overflow(bytes, 3, &needed)) limit_address_space(used, needed + kSpareAddressSpace);
    });
    sender.number(kFixture);
    sender.fixture(std::move(fixture));
  } catch (const FixtureError& error) {
    sender.number(kError);
    sender.text(one_line(error.object()));
    sender.text(one_line(error.reason()));
    sender.flush();
  }
}

[[noreturn]] void serve(int channel, const Containment& containment) {
  int status = 0;
  try {
    if (channel <= STDERR_FILENO) channel = ::fcntl(channel, F_DUPFD, STDERR_FILENO + 1);  // stdin may have been closed
    confine(containment.log);
    const std::int64_t used = address_space();
    while (true) {
      ::alarm(0);
      Receiver receiver(channel);
      answer_one(channel, receiver.text(kPathLimit), containment, used);
    }
  } catch (const ChannelClosed&) {
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reading process: %s\n", error.what());
    status = 1;
  }
  ::_exit(status);  // without the destructors and exit handlers of the program it was forked from
}

}  // namespace

// ---- the parent

void ReadingProcess::start() {
  int ends[2];
  // No fork of another reader may come between: its child would hold this channel open.
  std::unique_lock<std::mutex> lock(hdf5_mutex());
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(std::string("cannot start a reading process: ") + std::strerror(errno));
  }
  const int size = 1 << 20;
  ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const pid_t child = ::fork();
  if (child == 0) {
    lock.unlock();
    ::close(ends[0]);
    serve(ends[1], containment_);
  }
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw std::runtime_error(std::string("cannot start a reading process: ") + std::strerror(error));
  }
  child_ = child;
  channel_ = ends[0];
}

void ReadingProcess::stop() {
  if (child_ < 0) return;
  ::close(channel_);
  ::kill(child_, SIGKILL);  // it owes nothing any more
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

// After the channel was closed from the other side.
std::string ReadingProcess::how_it_ended() {
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 1000 && ended == 0; ++i) {
    ended = ::waitpid(child_, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) ended = 0;
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (ended != child_) {
    stop();
    return "libhdf5 gave up on this file without an answer: the file is damaged";
  }
  child_ = -1;
  ::close(channel_);
  if (!WIFSIGNALED(status)) {
    return "libhdf5 ended the reading process (exit status " + show(WEXITSTATUS(status)) + "): the file is damaged";
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) return "the reading process was killed (signal 9): there may be too little memory for this file";
  if (signal == SIGALRM) return "reading it takes too long: the file is damaged or the machine too slow";
  return "libhdf5 crashed on this file (signal " + show(signal) + "): the file is damaged";
}

Fixture ReadingProcess::read(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (name.size() > static_cast<std::size_t>(kPathLimit)) throw FixtureError(name, "", "its path is too long");
  if (child_ < 0) start();
  const auto after = [](double seconds) {
    const double bounded = std::min(seconds, 1e9);
    return Receiver::Clock::now() + std::chrono::duration_cast<Receiver::Clock::duration>(
                                        std::chrono::duration<double>(bounded));
  };
  std::string reason;
  double allowed = time_for(containment_, size_of(name));
  try {
    Sender sender(channel_);
    sender.text(name);
    sender.flush();
    Receiver receiver(channel_, after(allowed));
    std::uint64_t answer = receiver.number(kFixture);
    std::uint64_t bytes = 0;
    if (answer == kAdmitted) {
      bytes = receiver.number(static_cast<std::uint64_t>(containment_.limits.bytes));
      allowed = time_for(containment_, bytes);
      receiver.extend(after(allowed));
      answer = receiver.number(kFixture);
      if (answer == kFixture) return receiver.fixture(containment_.limits, static_cast<std::int64_t>(bytes));
    }
    if (answer == kError) {
      const std::string object = receiver.text(kPathLimit);
      throw FixtureError(name, object, receiver.text(kPathLimit));
    }
    throw ChannelNonsense("an answer out of order");
  } catch (const ChannelClosed&) {
    reason = how_it_ended();
  } catch (const ChannelTimeout&) {
    stop();
    reason = "reading it takes longer than " + show(std::round(10 * allowed) / 10) + " s: the file is damaged, or too large";
  } catch (const ChannelNonsense&) {
    stop();
    reason = "the reading process sent no fixture: the file is damaged";
  } catch (const std::bad_alloc&) {
    stop();
    reason = "needs more memory than there is";
  }
  throw FixtureError(name, "", reason);
}

Fixture read_fixture_contained(const std::filesystem::path& path, const Containment& containment) {
  return ReadingProcess(containment).read(path);
}

}  // namespace assay::golden
