#pragma once
// Long work without the GIL, that Ctrl-C ends. The work runs on a thread of its own; what it asks of Python runs on the thread that
// called, where a debugger, a CUDA context or a warning filter of the caller are in force.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace assay::python {

class Handover {
 public:
  // Runs `work` on a thread, in the default floating-point mode, and serves it from here until it ends. The caller holds the GIL.
  // Errors: what `work` throws; nanobind::python_error where a signal handler of Python raised, such as KeyboardInterrupt.
  void run(const std::function<void()>& work);

  // For the work: runs `body` on the thread that called run(), with the GIL. `body` throws nothing.
  void in_python(const std::function<void()>& body);

  // True once an interrupt came: calls that carry something out give up.
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // For a body that found one, such as a KeyboardInterrupt in the caller's own code.
  void cancel(std::exception_ptr why);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable posted_, done_;
  const std::function<void()>* body_ = nullptr;
  bool finished_ = false;
  std::atomic<bool> cancelled_ = false;
  std::exception_ptr interrupt_;
};

}  // namespace assay::python
