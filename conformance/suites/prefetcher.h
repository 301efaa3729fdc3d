#pragma once
// Work for later cases, done by other threads while a backend is busy with an earlier one.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "reference/support/on_this_thread.h"

namespace assay::conformance {

// What `make` gives for 0 to count - 1, made by `threads` threads, a few numbers ahead of take(). One thread calls take(), with
// mostly growing numbers; a skipped number is made when it is requested. `make` is called on several threads at once, and
// throws nothing.
//
//   take(6)   6 made   7 made   8 being made   9 being made   10 ... not before take(7)
//
template <class T>
class Prefetcher {
 public:
  Prefetcher(std::int64_t count, int threads, std::function<T(std::int64_t)> make)
      : count_(count), window_(2 * threads), make_(std::move(make)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { on_this_thread([this] { work(); }); });
  }
  // Waits for the item in progress.
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_) each.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  T take(std::int64_t number) {
    std::unique_lock lock(mutex_);
    taken_ = std::max(taken_, number + 1);
    made_.erase(made_.begin(), made_.lower_bound(number));
    const bool begun = number < next_ && (made_.contains(number) || being_made_.contains(number));
    next_ = std::max(next_, number + 1);
    changed_.notify_all();
    if (!begun) {
      lock.unlock();
      return make_(number);
    }
    changed_.wait(lock, [&] { return made_.contains(number); });
    return std::move(made_.extract(number).mapped());
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stops_ || next_ >= count_ || next_ < taken_ + window_; });
      if (stops_ || next_ >= count_) return;
      const std::int64_t number = next_++;
      being_made_.insert(number);
      lock.unlock();
      T made = make_(number);
      lock.lock();
      being_made_.erase(number);
      if (number >= taken_ - 1) made_.emplace(number, std::move(made));
      changed_.notify_all();
    }
  }

  const std::int64_t count_, window_;
  const std::function<T(std::int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, T> made_;
  std::set<std::int64_t> being_made_;
  std::int64_t next_ = 0, taken_ = 0;  // the first that is not begun; the first that was not requested
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay::conformance
