#include "conformance/worker/cpu_affinity.h"

namespace assay::conformance::worker {

ScopedCpuAffinity::ScopedCpuAffinity(int processor) {
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  if (!CPU_ISSET(processor, &before_)) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  is_set_ = sched_setaffinity(0, sizeof one, &one) == 0;
}

ScopedCpuAffinity::~ScopedCpuAffinity() {
  if (is_set_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace assay::conformance::worker
