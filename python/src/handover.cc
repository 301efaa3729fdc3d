#include "handover.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>
#include <utility>

#include "reference/support/float_mode.h"
#include "reference/support/parallel.h"

namespace assay::python {

namespace nb = nanobind;

void Handover::cancel(std::exception_ptr why) {
  if (!interrupt_) interrupt_ = std::move(why);
  cancelled_.store(true);
}

void Handover::in_python(const std::function<void()>& body) {
  std::unique_lock lock(mutex_);
  body_ = &body;
  posted_.notify_one();
  done_.wait(lock, [this] { return body_ == nullptr; });
}

// Signals are looked for where nothing was asked for a while: Python looks itself while it runs.
void Handover::serve() {
  constexpr std::chrono::milliseconds kPatience(50);
  for (;;) {
    const std::function<void()>* body = nullptr;
    bool finished = false;
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(mutex_);
      posted_.wait_for(lock, kPatience, [this] { return body_ != nullptr || finished_; });
      body = body_;
      finished = finished_;
    }
    if (body != nullptr) {
      (*body)();
      const std::lock_guard lock(mutex_);
      body_ = nullptr;
      done_.notify_one();
    } else if (finished) {
      return;
    } else if (PyErr_CheckSignals() != 0) {
      try {
        nb::raise_python_error();
      } catch (const nb::python_error&) {
        cancel(std::current_exception());
      }
    }
  }
}

void Handover::run(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread thread([&] {
    const DefaultFloatMode mode;
    const CancelledBy cancelled(cancelled_);
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    finished_ = true;
    posted_.notify_one();
  });
  serve();
  thread.join();
  if (interrupt_) std::rethrow_exception(std::exchange(interrupt_, nullptr));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace assay::python
