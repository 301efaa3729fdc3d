#include "conformance/run/late_stream.h"

#include <algorithm>
#include <chrono>

#include "conformance/run/guarded_buffer.h"

namespace assay::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr double kLate = 500, kShort = 50;  // microseconds: of the whole, and of a fill that is too small for its own start
constexpr std::int64_t kSmallest = std::int64_t{1} << 20, kLargest = std::int64_t{64} << 20;
constexpr int kMost = 64;

}  // namespace

LateStream::LateStream(Backend& backend, assay_stream* stream) : backend_(backend) {
  const assay_backend& table = backend.table();
  const auto fill = [&](std::int64_t bytes) { backend.check(table.fill(backend.context(), stream, memory_, 0x5a, bytes), "keep a stream busy"); };
  // Bytes whose fill takes long enough to be measured, and how long: the same for every case on a context.
  static thread_local struct {
    const assay_backend* table = nullptr;
    assay_context* context = nullptr;
    std::int64_t bytes = 0;
    double each = 0;
  } known;
  const bool measured = known.table == &table && known.context == backend.context();
  for (std::int64_t bytes = measured ? known.bytes : kSmallest;; bytes *= 4) {
    backend.check(table.allocate(backend.context(), bytes, &memory_), "allocate memory that keeps a stream busy");
    try {
      require_allocation(backend, memory_, bytes);
      if (!measured) {
        fill(bytes);
        backend.check(table.synchronize(backend.context(), stream, kCopyLimit), "wait for a stream");
        const Clock::time_point start = Clock::now();
        fill(bytes);
        backend.check(table.synchronize(backend.context(), stream, kCopyLimit), "wait for a stream");
        known = {&table, backend.context(), bytes, Microseconds(Clock::now() - start).count()};
      }
      if (measured || known.each >= kShort || bytes >= kLargest) {
        for (int i = 0, count = std::clamp(static_cast<int>(kLate / std::max(known.each, 1.0)), 1, kMost); i < count; ++i) fill(bytes);
        return;
      }
    } catch (...) {
      known.context = nullptr;
      if (!backend.is_given_up() && memory_ != nullptr) table.release(backend.context(), memory_);
      throw;
    }
    table.release(backend.context(), memory_);
    memory_ = nullptr;
  }
}

LateStream::~LateStream() {
  if (!backend_.is_given_up()) backend_.table().release(backend_.context(), memory_);
}

}  // namespace assay::conformance
