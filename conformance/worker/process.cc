#include "conformance/worker/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "conformance/backends/backend_handle.h"
#include "conformance/worker/supervisor.h"
#include "conformance/worker/wire.h"
#include "reference/support/sanitized.h"

extern "C" char** environ;

namespace assay::conformance::worker {
namespace {

bool offered = false;

[[noreturn]] void fail(const std::string& doing) {
  throw BackendError(ASSAY_OUT_OF_MEMORY, "a process for the backend cannot be made: " + doing + ": " + std::strerror(errno));
}

// Moves descriptors above those that a worker starts with, so that they do not collide.
int moved_up(int descriptor) {
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  const int why = errno;
  close(descriptor);
  errno = why;
  return moved;
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    read = moved_up(ends[0]);
    write = moved_up(ends[1]);
    if (read < 0 || write < 0) fail("pipe");
  }
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  Pipe(const Pipe&) = delete;
};

// The environment of a worker: that of this process. In a build with a sanitizer, a worker ends by the
// signal that a backend raises, as in other builds; and leaks of a backend at the end of its process are not reported.
class WorkerEnvironment {
 public:
  explicit WorkerEnvironment(const std::vector<std::string>& more) : more_(more) {
    const char* options = kAddressSanitizer ? "ASAN_OPTIONS" : kThreadSanitizer ? "TSAN_OPTIONS" : nullptr;
    for (char** each = environ; *each != nullptr; ++each) {
      if (options != nullptr && std::string_view(*each).starts_with(std::string(options) + "=")) continue;
      if (!is_replaced(*each)) words_.push_back(*each);
    }
    for (std::string& each : more_) words_.push_back(each.data());
    if (options != nullptr) {
      const char* before = std::getenv(options);
      changed_ = std::string(options) + "=" + (before == nullptr ? "" : std::string(before) + ":") +
                 "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:detect_leaks=0" +
                 (kThreadSanitizer ? ":die_after_fork=0" : "");
      words_.push_back(changed_.data());
    }
    words_.push_back(nullptr);
  }
  char* const* words() const { return words_.data(); }

 private:
  bool is_replaced(std::string_view variable) const {
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    return std::any_of(more_.begin(), more_.end(), [&](const std::string& each) { return each.starts_with(name); });
  }

  std::vector<std::string> more_;
  std::string changed_;
  std::vector<char*> words_;
};

}  // namespace

void offer_this_program() { offered = true; }

std::string worker_program() {
  if (offered) return "/proc/self/exe";
  if (const char* named = std::getenv("ASSAY_WORKER"); named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return (self.parent_path() / "assay").string();
}

std::vector<std::string> worker_command(const std::string& backend) {
  if (!is_python(backend)) return {worker_program()};
  const char* named = std::getenv("ASSAY_PYTHON");
  // It is handed to the worker so that one of another version says so.
  const std::string protocol = "os.environ['ASSAY_PROTOCOL'] = '" + worker::protocol() + "'\n";
  // The file is run without the package around it: what the package imports may start threads, and the worker must have one yet.
  constexpr const char* kStart =
      "found = importlib.util.find_spec('assay')\n"
      "if found is None: sys.exit(sys.executable + ' has no package assay: pip install . (ASSAY_PYTHON names another "
      "interpreter)')\n"
      "runpy.run_path(os.path.join(found.submodule_search_locations[0], '_worker.py'), run_name='__main__')\n";
  const std::string imports = "import importlib.util, os, runpy, sys\n";
  return {named == nullptr || *named == '\0' ? "python3" : named, "-c", imports + protocol + kStart};
}

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  const int made = memfd_create("assay-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) fail("memfd_create");
  descriptor_ = moved_up(made);
  if (descriptor_ < 0) fail("memfd_create");
  // A worker that could shorten it could end the judge, which would then read beyond its end.
  const bool sized = ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0 &&
                     fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  data_ = sized ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0) : MAP_FAILED;
  if (data_ != MAP_FAILED) return;
  const int why = errno;
  close(descriptor_);
  errno = why;
  fail("map " + std::to_string(bytes) + " bytes of shared memory");
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  close(descriptor_);
}

// The thread that starts and watches workers.
class Supervisor {
 public:
  static Supervisor& get() {
    static auto* only = new Supervisor;  // outlives threads that still wait for a worker
    return *only;
  }

  // Runs `start` on the thread; rethrows its exception here.
  std::shared_ptr<Process> start(std::function<std::shared_ptr<Process>()> start) {
    std::packaged_task<std::shared_ptr<Process>()> task(std::move(start));
    std::future<std::shared_ptr<Process>> made = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    if (write(bell_, &one, sizeof one) != sizeof one) fail("eventfd");
    return made.get();
  }

 private:
  Supervisor() {
    bell_ = moved_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (bell_ < 0) fail("eventfd");
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of a worker become children of this process: see end_orphans()
    // Signals to the program belong to its other threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { watch(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void watch() {
    std::vector<std::shared_ptr<Process>> running;
    for (;;) {
      std::vector<pollfd> watched{{bell_, POLLIN, 0}};
      bool all_handles = true;
      for (const auto& each : running) {
        watched.push_back({each->handle_, POLLIN, 0});  // poll() ignores a negative one
        watched.push_back({each->output_, POLLIN, 0});
        all_handles = all_handles && each->handle_ >= 0;
      }
      poll(watched.data(), watched.size(), all_handles ? -1 : 20);
      for (std::size_t i = running.size(); i-- > 0;) {
        if (watched[2 + 2 * i].revents != 0) running[i]->drain();
        const bool look = watched[1 + 2 * i].revents != 0 || running[i]->handle_ < 0;
        if (look && running[i]->reap([&] { end_orphans(running, *running[i]); }))
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (watched[0].revents == 0) continue;
      std::uint64_t number = 0;
      [[maybe_unused]] const ssize_t got = read(bell_, &number, sizeof number);
      std::deque<std::packaged_task<std::shared_ptr<Process>()>> tasks;
      {
        const std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
      }
      for (auto& task : tasks) {
        started_ = nullptr;
        task();
        if (started_ != nullptr) running.push_back(std::move(started_));
      }
    }
  }

  // Orphans of a worker in sessions of their own. Other children of this process are in its session; while
  // another library runs, they may be that one's, and are ended with it.
  static void end_orphans(const std::vector<std::shared_ptr<Process>>& running, const Process& ended) {
    std::set<pid_t> sessions{getsid(0)};
    for (const auto& each : running) {
      if (each.get() == &ended) continue;
      if (each->foreign_) return;
      sessions.insert(each->id_);
    }
    bool found = true;
    for (int round = 0; found && round < 32; ++round) {  // their children become ours once they have ended
      found = false;
      for (const pid_t child : children()) {
        const pid_t session = getsid(child);
        if (session < 0 || sessions.contains(session)) continue;
        end_child(child);
        found = true;
      }
    }
  }

  friend class Process;
  int bell_ = -1;
  std::mutex mutex_;
  std::deque<std::packaged_task<std::shared_ptr<Process>()>> tasks_;
  std::shared_ptr<Process> started_;  // by the task that runs
};

std::shared_ptr<Process> Process::start(const std::vector<std::string>& command, const std::vector<std::string>& words,
                                        int memory, std::function<void()> ended, const std::vector<std::string>& environment) {
  return Supervisor::get().start([&command, &words, memory, &ended, &environment] {
    const std::string& program = command.front();
    std::vector<std::string> all = command;
    all.insert(all.end(), {kWorkerVerb, std::to_string(getpid())});
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& each : all) arguments.push_back(each.data());
    arguments.push_back(nullptr);

    Pipe output, life;
    fcntl(output.read, F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.write, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, memory, kMemoryDescriptor);
    posix_spawn_file_actions_adddup2(&actions, life.read, kLifeDescriptor);
    posix_spawn_file_actions_addclosefrom_np(&actions, kLifeDescriptor + 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, every;
    sigemptyset(&none);
    sigfillset(&every);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &every);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t id = -1;
    const int error =
        posix_spawnp(&id, program.c_str(), &actions, &attributes, arguments.data(), WorkerEnvironment(environment).words());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      errno = error;
      fail("start " + program + (command.size() == 1 ? " (ASSAY_WORKER names another)" : " (ASSAY_PYTHON names another)"));
    }
    const std::shared_ptr<Process> made(new Process);
    made->id_ = id;
    made->handle_ = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
    if (made->handle_ >= 0) fcntl(made->handle_, F_SETFD, FD_CLOEXEC);
    made->foreign_ = !words.empty() && words.back() == kForeign;
    made->life_ = std::exchange(life.write, -1);
    made->output_ = std::exchange(output.read, -1);
    made->on_end_ = std::move(ended);
    Supervisor::get().started_ = made;
    return made;
  });
}

Process::~Process() {
  for (const int each : {handle_, life_, output_}) {
    if (each >= 0) close(each);
  }
}

bool Process::wait(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return has_ended(); });
}

void Process::kill() {
  const std::lock_guard lock(mutex_);
  if (has_ended()) return;  // its number may be another's by now
  ::kill(-id_, SIGKILL);
  ::kill(id_, SIGKILL);
}

void Process::drain() {
  constexpr std::size_t kKept = 4096;
  char piece[16384];
  for (int i = 0; i < 16; ++i) {  // a worker that prints without end must not occupy the thread
    const ssize_t got = read(output_, piece, sizeof piece);
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {  // closed by all that had it
        const std::lock_guard lock(mutex_);
        close(std::exchange(output_, -1));
      }
      return;
    }
    const std::lock_guard lock(mutex_);
    printed_.append(piece, static_cast<std::size_t>(got));
    if (printed_.size() > kKept) printed_.erase(0, printed_.size() - kKept);
  }
}

bool Process::reap(const std::function<void()>& end_orphans) {
  siginfo_t info{};
  const int asked = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (asked == 0 && info.si_pid == 0) return false;
  if (output_ >= 0) drain();
  {
    const std::lock_guard lock(mutex_);
    if (asked == 0) {
      // While it is not yet waited for, the group's number is still its own.
      ::kill(-id_, SIGKILL);
      waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED);
      end_code_ = info.si_code;
      end_status_ = info.si_status;
    }
    end_orphans();
    ended_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
  if (on_end_) on_end_();
  on_end_ = nullptr;
  return true;
}

std::string Process::end_text() {
  const std::lock_guard lock(mutex_);
  if (!has_ended()) return "";
  if (end_code_ == CLD_EXITED) return "ended with exit code " + std::to_string(end_status_);
  if (end_code_ == CLD_KILLED || end_code_ == CLD_DUMPED) {
    const char* name = sigabbrev_np(end_status_);
    return "ended by signal " + std::to_string(end_status_) + (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
  }
  return "ended";
}

std::string Process::printed() {
  const std::lock_guard lock(mutex_);
  return printed_;
}

}  // namespace assay::conformance::worker
