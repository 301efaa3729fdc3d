#pragma once
// Worker processes as the judge has them: started, watched, read from, ended.
//
// One thread of the judge starts and watches all of them. It lives as long as the program, since the system ends a worker
// with the thread that started it.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace assay::conformance::worker {

// The word after the program's name that makes a program a worker; see serve() in server.h.
constexpr const char* kWorkerVerb = "worker-process";
// Descriptors that a worker starts with, beside 0 to 2.
constexpr int kMemoryDescriptor = 3, kLifeDescriptor = 4;

// The last word of one that loads a library which is not ours, and of one that only says what it finds about cuBLASLt.
constexpr const char *kForeign = "limited", *kFindings = "cublaslt";

// Says that this program, started with kWorkerVerb, is a worker: what a program's main() does that calls serve().
void offer_this_program();
// The program to start as a worker: this one if it has offered itself, else what ASSAY_WORKER names, else `assay` beside this one.
std::string worker_program();

// Backends that are functions of Python, "python:MODULE:NAME", or of a library by apache-tvm-ffi, "ffi:LIBRARY:SYMBOL". Their worker is an
// interpreter with the package `assay`.
inline bool is_python(std::string_view backend) { return backend.starts_with("python:") || backend.starts_with("ffi:"); }
// The command that starts a worker for `backend`, without kWorkerVerb and what follows it. The interpreter is what ASSAY_PYTHON names,
// else python3.
std::vector<std::string> worker_command(const std::string& backend);

// Memory that two processes share. It cannot be made shorter by either.
class SharedMemory {
 public:
  // Errors: BackendError where the system gives none.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  int descriptor() const { return descriptor_; }
  void* data() const { return data_; }

 private:
  int descriptor_ = -1;
  std::size_t bytes_;
  void* data_ = nullptr;
};

class Process {
 public:
  // Starts `command` with these words behind kWorkerVerb. `ended` is called once it has ended, from another thread. `environment`:
  // variables, NAME=VALUE, that take the place of this process's.
  // Errors: BackendError where it cannot be started.
  static std::shared_ptr<Process> start(const std::vector<std::string>& command, const std::vector<std::string>& words,
                                        int memory, std::function<void()> ended,
                                        const std::vector<std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  // False: it has not ended within this time.
  bool wait(std::chrono::milliseconds at_most);
  // Ends it, and what it has started. Returns at once.
  void kill();
  // "ended by signal 11 (SIGSEGV)", "ended with exit code 0". Empty while it runs.
  std::string end_text();
  // The last of what it printed; at most 4 KiB.
  std::string printed();

 private:
  friend class Supervisor;
  Process() = default;
  void drain();
  bool reap(const std::function<void()>& end_orphans);  // true once it has ended

  pid_t id_ = -1;
  int handle_ = -1;  // pidfd, or -1 where the system has none
  int life_ = -1;    // the worker ends when this is closed
  int output_ = -1;
  bool foreign_ = false;  // it has a library loaded that is not ours
  std::function<void()> on_end_;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  int end_code_ = 0, end_status_ = 0;
  std::string printed_;
};

}  // namespace assay::conformance::worker
