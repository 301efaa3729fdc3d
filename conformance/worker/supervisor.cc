#include "conformance/worker/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace assay::conformance::worker {
namespace {

// Reaps adopted processes; true once `child` has ended, with its status in `status`.
bool reap(pid_t child, int& status) {
  bool ended = false;
  int how = 0;
  for (pid_t id = 0; (id = waitpid(-1, &how, WNOHANG)) > 0;) {
    if (id != child) continue;
    ended = true;
    status = how;
  }
  return ended;
}

// Repeats until there is no child, or one that cannot be ended: the processes of a child are adopted when it ends.
void end_all_children() {
  for (int round = 0; round < 1000; ++round) {
    int status = 0;
    reap(-1, status);
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;  // there is none
    for (const pid_t each : children()) end_child(each);
  }
}

// Ends this process with the status of another.
[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  const int number = WTERMSIG(status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(number, SIG_DFL);
  kill(getpid(), number);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  _exit(128 + number);
}

[[noreturn]] void supervise(pid_t child, int life, int ends) {
  for (;;) {
    pollfd watched[] = {{life, POLLIN, 0}, {ends, POLLIN, 0}};
    poll(watched, 2, ends < 0 ? 20 : -1);
    if (ends >= 0 && watched[1].revents != 0) {
      signalfd_siginfo info;
      [[maybe_unused]] const ssize_t got = read(ends, &info, sizeof info);
    }
    int status = 0;
    if (reap(child, status)) {
      end_all_children();
      end_as(status);
    }
    if (watched[0].revents != 0) {  // nothing is written there: readable means that the judge has ended
      kill(child, SIGKILL);
      end_all_children();
      _exit(1);
    }
  }
}

}  // namespace

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code failed;
  for (const auto& each : std::filesystem::directory_iterator("/proc", failed)) {
    const auto id = static_cast<pid_t>(std::strtol(each.path().filename().c_str(), nullptr, 10));
    if (id <= 0) continue;
    std::ifstream file(each.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // of "ID (NAME) STATE PARENT"; the name may hold anything
    if (name_end == line.npos || name_end + 4 > line.size()) continue;
    if (std::strtol(line.c_str() + name_end + 4, nullptr, 10) == getpid()) found.push_back(id);
  }
  return found;
}

void end_child(pid_t id) {
  ::kill(id, SIGKILL);
  for (int i = 0; i < 1000; ++i) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG) != 0 || info.si_pid != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void fork_supervisor(int life) {
  // Signals to the group are for the child: the supervisor blocks all that can be blocked.
  sigset_t all, before, child_ends;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t supervisor = getpid();
  const pid_t child = fork();
  if (child < 0) _exit(1);
  if (child == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(1);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  supervise(child, life, signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace assay::conformance::worker
