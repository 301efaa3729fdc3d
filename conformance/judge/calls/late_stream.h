#pragma once
// A busy stream: work that is enqueued on it runs late, so that work on any other stream overtakes it.

#include <cstdint>

#include "conformance/backends/backend_handle.h"

namespace assay::conformance {

inline constexpr std::int64_t kLateElements = std::int64_t{1}
                                              << 18;  // calls with more elements are not repeated on a busy stream
inline constexpr std::int64_t kLatePiece = std::int64_t{32}
                                           << 10;  // copies of at most this size return before the stream reaches them

class LateStream {
 public:
  // Enqueues fills of memory of its own on `stream`, about half a millisecond of them; none on a backend whose fills are done when
  // they return, as on the host: such a stream cannot be kept busy. Throws BackendError.
  LateStream(Backend& backend, assay_stream* stream);
  // Releases the memory; the stream must have been waited for.
  ~LateStream();
  LateStream(const LateStream&) = delete;
  LateStream& operator=(const LateStream&) = delete;

  // True once it is known that fills cannot keep a stream of the backend busy.
  static bool is_idle_on(const Backend& backend);

 private:
  Backend& backend_;
  void* memory_ = nullptr;
};

}  // namespace assay::conformance
