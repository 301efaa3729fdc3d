#pragma once
// A stream that is busy: what is enqueued on it comes late, so that work on any other stream overtakes it.

#include <cstdint>

#include "conformance/backends/backend.h"

namespace assay::conformance {

inline constexpr std::int64_t kLateElements = std::int64_t{1} << 18;   // what has more elements is not made once more on a busy stream
inline constexpr std::int64_t kLatePiece = std::int64_t{32} << 10;  // copies of no more than this do not keep the caller waiting

class LateStream {
 public:
  // Enqueues fills of memory of its own on `stream`, about half a millisecond of them; none on a backend whose fills are done when
  // they return, as one on the host may be: nothing keeps such a stream busy. Throws BackendError.
  LateStream(Backend& backend, assay_stream* stream);
  // Gives the memory back; the stream must have been waited for.
  ~LateStream();
  LateStream(const LateStream&) = delete;
  LateStream& operator=(const LateStream&) = delete;

  // Whether it is known that nothing keeps a stream of the backend busy.
  static bool is_idle_on(const Backend& backend);

 private:
  Backend& backend_;
  void* memory_ = nullptr;
};

}  // namespace assay::conformance
