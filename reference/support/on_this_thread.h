#pragma once
// Work outside the thread pool of parallel.h.

#include <functional>

namespace assay {

// Calls `body` in the default floating-point mode. Calls of parallel_for in it run inline: a thread of the caller's own neither
// waits for the pool nor keeps others waiting.
void on_this_thread(const std::function<void()>& body);

}  // namespace assay
