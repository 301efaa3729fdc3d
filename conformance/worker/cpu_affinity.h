#pragma once
// The processor that a thread runs on.

#include <sched.h>

namespace assay::conformance::worker {

// Keeps the calling thread on one processor for as long as this lives. A judge's thread and its worker take turns, and each wakes
// the other. Where both sleep on one processor, a turn is a switch of a few microseconds; where the other one has to be woken from
// its sleep first, it takes ten times as long, on a virtual machine more.
class ScopedCpuAffinity {
 public:
  // Nothing is changed where `processor` is negative, or not one that the thread may run on.
  explicit ScopedCpuAffinity(int processor);
  ~ScopedCpuAffinity();
  ScopedCpuAffinity(const ScopedCpuAffinity&) = delete;
  ScopedCpuAffinity& operator=(const ScopedCpuAffinity&) = delete;

 private:
  bool is_set_ = false;
  cpu_set_t before_;
};

}  // namespace assay::conformance::worker
