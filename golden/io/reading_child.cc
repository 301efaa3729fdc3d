#include "golden/io/reading_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "golden/io/channel.h"
#include "golden/io/memory.h"
#include "reference/support/sanitized.h"

namespace assay::golden {
namespace {

void limit_address_space(std::int64_t used, std::int64_t more) {
  rlimit limit{};
  std::int64_t most = 0;
  if (kHasShadowMemory || used < 0 || __builtin_add_overflow(used, more, &most)) return;
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(most));
  ::setrlimit(RLIMIT_AS, &limit);
}

// A timer ends the child by SIGALRM if the parent has died; the parent's own deadline is a little earlier.
void arm(double seconds) { ::alarm(static_cast<unsigned>(std::min(std::ceil(seconds) + 5, 1e9))); }

void confine(int log) {
  if (!kHasShadowMemory) {  // whose own handlers report what happened and end the process
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
  ::prctl(PR_SET_DUMPABLE, 0);  // a core handler that is a pipe ignores the limit
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(log >= 0 ? log : nowhere, STDERR_FILENO);
}

void note(WorkingOn& working_on, std::string_view object) {
  const std::size_t size = std::min(object.size(), WorkingOn::kSize - 1);
  std::memcpy(working_on.object, object.data(), size);
  working_on.object[size] = '\0';
}

struct Limits {
  std::int64_t used, spare;
};

void answer_one(int channel, const std::string& path, Extent extent, const Containment& containment, Limits limits,
                WorkingOn& working_on) {
  Sender sender(channel);
  note(working_on, "");
  arm(time_for(containment, stored_size(path.c_str())));
  limit_address_space(limits.used, limits.spare);
  const auto send = [&](Answer answer, const FixtureError& error) {
    sender.number(answer);
    sender.text(one_line(error.object()));
    sender.text(one_line(error.reason()));
    sender.flush();
  };
  LeftOut left_out;
  try {
    Fixture fixture = read_fixture(
        path, containment.limits,
        [&](std::int64_t bytes) {
          sender.number(kAdmitted);
          sender.number(static_cast<std::uint64_t>(bytes));
          sender.flush();
          arm(time_for(containment, bytes));
          std::int64_t needed = 0;
          if (!__builtin_mul_overflow(bytes, 3, &needed)) limit_address_space(limits.used, needed + limits.spare);
        },
        [&](std::string_view object) { note(working_on, object); }, &left_out, extent);
    note(working_on, "");
    sender.number(kFixture);
    sender.fixture(std::move(fixture));
    sender.left_out(left_out);
    sender.flush();
  } catch (const LacksMemory& error) {
    send(kLacksMemory, error);
  } catch (const FixtureError& error) {
    send(kError, error);
  }
}

}  // namespace

double time_for(const Containment& containment, std::int64_t bytes) {
  return containment.seconds + static_cast<double>(bytes) / kReadBytesPerSecond;
}

std::int64_t stored_size(const char* path) {
  struct stat found {};
  if (::stat(path, &found) != 0) return 0;
  return std::min<std::int64_t>(found.st_size, static_cast<std::int64_t>(found.st_blocks) * 512);
}

void serve_reading(int channel, const Containment& containment, std::int64_t spare, WorkingOn& working_on) {
  int status = 0;
  try {
    if (channel <= STDERR_FILENO) channel = ::fcntl(channel, F_DUPFD, STDERR_FILENO + 1);  // stdin may have been closed
    confine(containment.log);
    const Limits limits{address_space_used(), spare};
    while (true) {
      ::alarm(0);
      Receiver receiver(channel);
      const std::string path = receiver.text(kPathLimit);
      const bool is_outline = receiver.number(1) == 1;
      answer_one(channel, path, is_outline ? Extent::outline : Extent::whole, containment, limits, working_on);
    }
  } catch (const ChannelClosed&) {
  } catch (const std::bad_alloc&) {
    status = kLackedMemoryStatus;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reading process: %s\n", error.what());
    status = 1;
  }
  ::_exit(status);  // without the destructors and exit handlers of the program it was forked from
}

}  // namespace assay::golden
