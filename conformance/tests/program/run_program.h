#pragma once
// Runs a program and keeps what it printed.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace assay::conformance {

struct Ran {
  int code = -1;   // exit code, or -1
  int signal = 0;  // that ended it, or 0
  std::string out, err;
};

struct ProcessOptions {
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to the caller's; an empty value unsets a variable
  bool terminal = false;                                         // standard output and error are terminals
  std::function<void(pid_t)> meanwhile;                          // called once the program runs
};

namespace detail {

inline void check(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

struct Channel {
  int ours = -1, theirs = -1;
  explicit Channel(bool terminal) {
    if (terminal) {
      ours = posix_openpt(O_RDWR | O_NOCTTY);
      check(ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0, "posix_openpt");
      theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
      check(theirs >= 0, "ptsname");
    } else {
      int ends[2];
      check(pipe(ends) == 0, "pipe");
      ours = ends[0];
      theirs = ends[1];
    }
    fcntl(ours, F_SETFD, FD_CLOEXEC);
    fcntl(theirs, F_SETFD, FD_CLOEXEC);
  }
  ~Channel() {
    if (ours >= 0) close(ours);
    if (theirs >= 0) close(theirs);
  }
  void close_theirs() { close(std::exchange(theirs, -1)); }
};

}  // namespace detail

// Variables of GoogleTest and of the program are not passed on to the program.
inline Ran run_program(const std::vector<std::string>& command, const ProcessOptions& options = {}) {
  detail::Channel out(options.terminal), err(options.terminal);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  detail::check(child >= 0, "fork");
  if (child == 0) {
    for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE", "GTEST_OUTPUT", "GTEST_FILTER",
                             "ASSAY_GOLDEN", "ASSAY_THREADS", "ASSAY_UNITS", "ASSAY_COMMAND", "ASSAY_BACKEND",
                             "ASSAY_BACKEND_OPTIONS", "ASSAY_PROFILE", "NO_COLOR"}) {
      unsetenv(name);
    }
    setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : options.environment)
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    dup2(out.theirs, STDOUT_FILENO);
    dup2(err.theirs, STDERR_FILENO);
    execvp(words[0], words.data());
    _exit(127);
  }
  out.close_theirs();
  err.close_theirs();
  Ran ran;
  std::thread waiting;
  if (options.meanwhile) waiting = std::thread([&] { options.meanwhile(child); });
  pollfd watched[] = {{out.ours, POLLIN, 0}, {err.ours, POLLIN, 0}};
  std::string* texts[] = {&ran.out, &ran.err};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (poll(watched, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(watched[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
      } else {  // the end; a terminal says EIO then
        watched[i].fd = -1;
      }
    }
  }
  if (waiting.joinable()) waiting.join();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ran.signal = WTERMSIG(status);
  return ran;
}

inline Ran assay(std::vector<std::string> words, const ProcessOptions& options = {}) {
  words.insert(words.begin(), ASSAY_PROGRAM);
  return run_program(words, options);
}

// True once the file is there; false after half a minute.
inline bool appears(const std::filesystem::path& path) {
  for (int i = 0; i < 3000; ++i) {
    if (std::filesystem::exists(path)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Standard error without the line that names what is judged.
inline std::string without_judged_line(const std::string& text) {
  std::string rest;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (text.compare(at, 15, "assay: judging ") != 0) rest += text.substr(at, end - at);
    at = end;
  }
  return rest;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace assay::conformance
