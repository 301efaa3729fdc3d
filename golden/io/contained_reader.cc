#include "golden/io/contained_reader.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "golden/io/channel.h"
#include "golden/io/hdf5_handle.h"
#include "golden/io/memory.h"
#include "golden/io/reading_child.h"
#include "reference/types/error.h"

namespace assay::golden {
namespace {

constexpr std::int64_t kLeastSpare = std::int64_t{64} << 20;

[[noreturn]] void fail_to_start(int error) {
  throw MachineError(std::string("cannot start a process that reads fixtures: ") + std::strerror(error));
}

// Waits up to `patience` for the child to end; 0 if it does not.
pid_t wait_for(pid_t child, int& status, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended != 0 && !(ended < 0 && errno == EINTR)) return ended;
    if (std::chrono::steady_clock::now() > end) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

ReadingProcess::ReadingProcess(Containment containment) : containment_(std::move(containment)) {
  void* shared = ::mmap(nullptr, sizeof(WorkingOn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_to_start(errno);
  working_on_ = static_cast<WorkingOn*>(shared);
}

ReadingProcess::~ReadingProcess() {
  stop();
  ::munmap(working_on_, sizeof(WorkingOn));
}

void ReadingProcess::start() {
  const std::int64_t memory = memory_left();
  containment_.limits.bytes = std::min(containment_.limits.bytes, memory / kShareOfMemory);
  const std::int64_t spare = std::clamp(memory / 2, kLeastSpare, kSpareAddressSpace);
  is_limited_ = address_space_left() < kSpareAddressSpace;
  is_short_of_memory_ = std::min(memory / 2, address_space_left()) < kSpareAddressSpace;

  int ends[2];
  // Another reader must not fork in between: its child would hold this channel open.
  std::unique_lock<std::mutex> lock(hdf5_mutex());
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_to_start(errno);
  const int size = 1 << 20;
  ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const pid_t child = ::fork();
  if (child == 0) {
    lock.unlock();
    ::close(ends[0]);
    serve_reading(ends[1], containment_, spare, *working_on_);
  }
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail_to_start(error);
  }
  child_ = child;
  channel_ = ends[0];
}

void ReadingProcess::stop() {
  if (child_ < 0) return;
  ::close(channel_);
  ::kill(child_, SIGKILL);  // it has no work left
  int status = 0;
  // A child that waits for a disk that does not respond cannot be killed; it is abandoned.
  wait_for(child_, status, std::chrono::seconds(5));
  child_ = -1;
}

std::string ReadingProcess::object_at_work() const {
  return {working_on_->object, ::strnlen(working_on_->object, WorkingOn::kSize)};
}

// After the channel was closed from the other side.
void ReadingProcess::fail_ended(const std::string& name) {
  const std::string object = object_at_work();
  const auto machine = [&](const std::string& why) { throw MachineError(name + ": " + why); };
  int status = 0;
  if (wait_for(child_, status, std::chrono::seconds(1)) != child_) {
    stop();
    throw FixtureError(name, object, "libhdf5 gave up on this file without an answer: the file is damaged");
  }
  child_ = -1;
  ::close(channel_);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGKILL) machine("out of memory: the process that read this file was killed (signal 9)");
  if (is_short_of_memory_) machine("out of memory while this file was read: too little is left, or allowed (ulimit -v)");
  if (signal == SIGALRM)
    throw FixtureError(name, object, "reading it takes too long: the file is damaged or the machine too slow");
  if (signal != 0)
    throw FixtureError(name, object, "libhdf5 crashed on this file (signal " + show(signal) + "): the file is damaged");
  if (WEXITSTATUS(status) == kLackedMemoryStatus) {
    throw FixtureError(name, object, "needs more memory than a valid file: the file is damaged");
  }
  throw FixtureError(name, object,
                     "libhdf5 ended the reading process (exit status " + show(WEXITSTATUS(status)) + "): the file is damaged");
}

Fixture ReadingProcess::read(const std::filesystem::path& path, LeftOut* left_out) {
  return request(path, Extent::whole, left_out);
}

Fixture ReadingProcess::outline(const std::filesystem::path& path) { return request(path, Extent::outline, nullptr); }

Fixture ReadingProcess::request(const std::filesystem::path& path, Extent extent, LeftOut* left_out) {
  const std::string name = path.string();
  if (name.size() > static_cast<std::size_t>(kPathLimit)) throw FixtureError(name, "", "its path is too long");
  if (child_ < 0) start();
  const auto after = [](double seconds) {
    const double bounded = std::min(seconds, 1e9);
    return Receiver::Clock::now() + std::chrono::duration_cast<Receiver::Clock::duration>(std::chrono::duration<double>(bounded));
  };
  double allowed = time_for(containment_, stored_size(name.c_str()));
  try {
    Sender sender(channel_);
    sender.text(name);
    sender.number(extent == Extent::outline ? 1 : 0);
    sender.flush();
    Receiver receiver(channel_, after(allowed));
    std::uint64_t answer = receiver.number(kFixture);
    std::uint64_t bytes = 0;
    if (answer == kAdmitted) {
      bytes = receiver.number(static_cast<std::uint64_t>(containment_.limits.bytes));
      allowed = time_for(containment_, static_cast<std::int64_t>(bytes));
      receiver.extend(after(allowed));
      answer = receiver.number(kFixture);
      if (answer == kFixture) {
        Fixture fixture = receiver.fixture(containment_.limits, static_cast<std::int64_t>(bytes));
        LeftOut received = receiver.left_out();
        if (left_out != nullptr) *left_out = std::move(received);
        return fixture;
      }
    }
    if (answer == kError || answer == kLacksMemory) {
      const std::string object = receiver.text(kPathLimit);
      const std::string reason = receiver.text(kPathLimit);
      if (answer == kLacksMemory && is_short_of_memory_) {
        stop();
        throw MachineError(name + ": out of memory while this file was read: " + reason);
      }
      if (is_limited_) {  // libraries that lack memory fail in various ways, which look like damage
        stop();
        throw MachineError(
            name +
            ": out of memory while this file was read, or damaged: under so low a limit (ulimit -v) one looks like the other: " +
            reason);
      }
      throw FixtureError(name, object, reason);
    }
    throw ChannelNonsense("an answer out of order");
  } catch (const ChannelClosed&) {
    fail_ended(name);
  } catch (const ChannelTimeout&) {
    stop();
    if (is_limited_)
      throw MachineError(name + ": out of memory, or of time, while this file was read: too little is allowed (ulimit -v)");
    throw FixtureError(
        name, object_at_work(),
        "reading it takes longer than " + show(std::round(10 * allowed) / 10) + " s: the file is damaged, or too large");
  } catch (const ChannelNonsense&) {
    stop();
    throw FixtureError(name, "", "the reading process sent no fixture: the file is damaged");
  } catch (const std::bad_alloc&) {
    stop();
    throw MachineError(name + ": out of memory: this process cannot hold the tensors of the file");
  }
}

Fixture read_fixture_contained(const std::filesystem::path& path, const Containment& containment, LeftOut* left_out) {
  return ReadingProcess(containment).read(path, left_out);
}

}  // namespace assay::golden
