#pragma once
// Ctrl-C ends a run between two cases: what was found is still told. A second one ends the program at once.

#include <csignal>

namespace assay::conformance {

inline volatile std::sig_atomic_t interrupts = 0;

inline void catch_interrupts() {
  const auto handler = [](int signal) {
    if (interrupts != 0) {
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    }
    interrupts = 1;
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

inline bool interrupted() { return interrupts != 0; }

}  // namespace assay::conformance
