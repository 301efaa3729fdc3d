#pragma once
// Workers of a journal, as processes that are killed at random.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {

// A file of many cases, a line each.
inline std::string case_file(const golden::TemporaryFolder& folder, int count) {
  const std::string path = (folder / "many.txt").string();
  const Ran made = run_program({"python3", ASSAY_MANY_CASES, std::to_string(count), "--seed", "5"});
  EXPECT_EQ(made.code, 0) << made.err;
  std::ofstream(path) << made.out;
  return path;
}

inline pid_t start(const Words& words) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> arguments{const_cast<char*>(ASSAY_PROGRAM)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    setenv("ASSAY_THREADS", "1", 1);
    freopen("/dev/null", "w", stdout);
    freopen("/dev/null", "w", stderr);
    execv(ASSAY_PROGRAM, arguments.data());
    _exit(127);
  }
  return child;
}

// Keeps so many workers at work until all blocks are done, and kills at most `most` of them at random. Each that ends by itself must have
// exit code 0. Returns how many were killed.
inline int run_workers(const Words& worker, int count, int most) {
  std::mt19937 random(11);
  std::vector<pid_t> workers;
  for (int i = 0; i < count; ++i) workers.push_back(start(worker));
  int kills = 0;
  for (; kills < most; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 200));
    pid_t& victim = workers[random() % workers.size()];
    int status = 0;
    if (waitpid(victim, &status, WNOHANG) == victim) {  // all blocks are done
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      break;
    }
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    victim = start(worker);
  }
  for (const pid_t each : workers) {
    int status = 0;
    if (waitpid(each, &status, 0) == each) EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  return kills;
}

}  // namespace assay::conformance
