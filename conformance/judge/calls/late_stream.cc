#include "conformance/judge/calls/late_stream.h"

#include <algorithm>
#include <chrono>

#include "conformance/judge/memory/guarded_buffer.h"

namespace assay::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr double kLate = 500, kShort = 50;  // microseconds: of the whole, and of a fill that is too small for its own start
constexpr std::int64_t kSmallest = std::int64_t{1} << 20, kLargest = std::int64_t{64} << 20;
constexpr int kMax = 64;
constexpr int kSure = 5;           // fills one after another
constexpr double kMaxShare = 0.7;  // of the time of a fill, in the call

// Measured times of the fills of a context.
struct Known {
  const assay_backend* table = nullptr;
  assay_context* context = nullptr;
  std::int64_t bytes = 0;  // whose fill takes long enough to be measured
  double each = 0;         // how long it takes
  bool at_once = false;    // the fill is complete when the call returns: it cannot keep the stream busy
};

// The same for every case on a context.
thread_local Known known;

bool is_known(const Backend& backend) { return known.table == &backend.table() && known.context == backend.context(); }

// Times of one fill: until the call returns, and until the wait for the stream returns.
struct Taken {
  double call, whole;
};

}  // namespace

LateStream::LateStream(Backend& backend, assay_stream* stream) : backend_(backend) {
  const assay_backend& table = backend.table();
  const auto fill = [&](std::int64_t bytes) {
    backend.check(table.fill(backend.context(), stream, memory_, 0x5a, bytes), "keep a stream busy");
  };
  const auto take_time = [&](std::int64_t bytes) {
    const Clock::time_point start = Clock::now();
    fill(bytes);
    backend.settle();
    const Clock::time_point called = Clock::now();
    backend.check(table.synchronize(backend.context(), stream, kCopyLimit), "wait for a stream");
    return Taken{Microseconds(called - start).count(), Microseconds(Clock::now() - start).count()};
  };
  if (is_idle_on(backend)) return;
  const bool measured = is_known(backend);
  for (std::int64_t bytes = measured ? known.bytes : kSmallest;; bytes *= 4) {
    backend.check(table.allocate(backend.context(), bytes, &memory_), "allocate memory that keeps a stream busy");
    try {
      require_allocation(backend, memory_, bytes);
      if (!measured) {
        take_time(bytes);
        const Taken taken = take_time(bytes);
        known = {&table, backend.context(), bytes, taken.whole, false};
        // A thread that is descheduled between the two looks the same, but not several times in a row.
        int at_once = 0;
        if (taken.whole >= kShort) {
          for (Taken each = taken; at_once < kSure && each.call >= kMaxShare * each.whole; each = take_time(bytes)) ++at_once;
        }
        known.at_once = at_once == kSure;
      }
      if (!known.at_once && (measured || known.each >= kShort || bytes >= kLargest)) {
        for (int i = 0, count = std::clamp(static_cast<int>(kLate / std::max(known.each, 1.0)), 1, kMax); i < count; ++i)
          fill(bytes);
        return;
      }
    } catch (...) {
      known.context = nullptr;
      if (!backend.is_given_up() && memory_ != nullptr) table.release(backend.context(), memory_);
      throw;
    }
    table.release(backend.context(), memory_);
    memory_ = nullptr;
    if (known.at_once) return;
  }
}

bool LateStream::is_idle_on(const Backend& backend) { return is_known(backend) && known.at_once; }

LateStream::~LateStream() {
  if (memory_ != nullptr && !backend_.is_given_up()) backend_.table().release(backend_.context(), memory_);
}

}  // namespace assay::conformance
