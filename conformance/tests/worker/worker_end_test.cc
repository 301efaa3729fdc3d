// How worker processes end: killed from outside, or with the program, and with all the processes that they have started.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "conformance/tests/worker/run_hostile.h"

namespace assay::conformance {
namespace {

bool is_alive(pid_t process) { return kill(process, 0) == 0; }

pid_t process_in(const std::filesystem::path& file) {
  pid_t process = 0;
  for (int i = 0; i < 20'000 && process == 0; ++i) {  // a program with a sanitizer takes its time
    std::ifstream(file) >> process;
    if (process == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return process;
}

// A worker is ended from outside during a run: no verdict is lost.
TEST(Workers, OneThatIsKilled) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pid";
  ProcessOptions options;
  options.meanwhile = [&](pid_t) { kill(process_in(file), SIGKILL); };
  const Ran ran = assay({"run", "--profile", "standard", "--quiet", "--backend", ASSAY_HOSTILE_BACKEND, "--backend-options",
                         "x@pid=" + file.string()},
                        options);
  EXPECT_EQ(ran.signal, 0);
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "ended by signal 9 (SIGKILL)")) << ran.out;
  EXPECT_FALSE(contains(ran.out, " 0 failed, ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, " elements compared")) << ran.out;
}

// The program is ended by a signal that it cannot catch: none of its processes remains.
TEST(Workers, EndWithTheProgram) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pid";
  pid_t worker = 0;
  ProcessOptions options;
  options.environment.emplace_back("HOSTILE", "x@pid=" + file.string());
  options.meanwhile = [&](pid_t program) {
    worker = process_in(file);
    kill(program, SIGKILL);
  };
  const Ran ran = assay({"run", "--profile", "standard", "--quiet", "--backend", ASSAY_HOSTILE_BACKEND}, options);
  EXPECT_EQ(ran.signal, SIGKILL);
  ASSERT_GT(worker, 0);
  for (int i = 0; i < 400 && is_alive(worker); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(is_alive(worker));
}

// The same for processes that a library has started in other sessions, while its own process continues.
TEST(Workers, EndWithTheProgramAndAllTheyHaveStarted) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pids";
  std::vector<pid_t> started;
  ProcessOptions options;
  options.environment.emplace_back("HOSTILE", "daemon@execute=" + file.string());
  options.meanwhile = [&](pid_t program) {
    process_in(file);
    for (int i = 0; i < 2000 && started.size() < 2; ++i) {  // the second is written by the first's child
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      started.clear();
      std::ifstream pids(file);
      for (pid_t process = 0; pids >> process;) started.push_back(process);
    }
    for (const pid_t process : started) EXPECT_TRUE(is_alive(process)) << process << ": nothing to end";
    kill(program, SIGKILL);
  };
  const Ran ran = assay({"run", "--profile", "standard", "--quiet", "--backend", ASSAY_HOSTILE_BACKEND}, options);
  EXPECT_EQ(ran.signal, SIGKILL);
  EXPECT_GE(started.size(), 2u);
  for (const pid_t process : started) {
    for (int i = 0; i < 400 && is_alive(process); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(is_alive(process)) << process;
    if (is_alive(process)) kill(process, SIGKILL);
  }
}

// Processes that a library starts in other sessions end with its process.
TEST(Workers, EndWithWhatTheyHaveStarted) {
  const golden::TemporaryFolder folder;
  const std::filesystem::path file = folder / "pids";
  const Seen seen = run_hostile("daemon@execute=" + file.string());
  EXPECT_EQ(seen.ran.code, 0) << seen.ran.out << seen.ran.err;
  std::ifstream pids(file);
  int count = 0;
  for (pid_t process = 0; pids >> process; ++count) EXPECT_FALSE(is_alive(process)) << process;
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace assay::conformance
