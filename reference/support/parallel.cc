#include "reference/support/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include "reference/support/float_mode.h"
#include "reference/support/on_this_thread.h"
#include "reference/types/error.h"

namespace assay {
namespace {

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

thread_local const std::atomic<bool>* cancels = nullptr;

struct Job {
  Job(std::int64_t all, std::int64_t range, const std::function<void(std::int64_t, std::int64_t)>& work_on)
      : count(all), grain(range), body(&work_on) {}

  const std::int64_t count;
  const std::int64_t grain;
  const std::function<void(std::int64_t, std::int64_t)>* const body;
  const std::atomic<bool>* const cancelled = cancels;  // of the calling thread
  std::atomic<std::int64_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;

  void work() {
    for (;;) {
      const std::int64_t range = next.fetch_add(1);
      if (range > (count - 1) / grain) return;
      const std::int64_t begin = range * grain;
      try {
        if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) throw Cancelled();
        (*body)(begin, std::min(grain, count - begin) + begin);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }
};

thread_local bool inside_body = false;

class Pool {
 public:
  explicit Pool(int helpers) {
    try {
      threads_.reserve(static_cast<std::size_t>(helpers));
      for (int i = 0; i < helpers; ++i) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // No more threads can be created: the running threads and the caller do the work.
    } catch (const std::bad_alloc&) {
      // Memory for a thread is missing: the same.
    }
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(Job& job) {
    const std::lock_guard one_job(callers_);
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
      busy_ = static_cast<int>(threads_.size());
    }
    wake_.notify_all();
    inside_body = true;
    job.work();
    inside_body = false;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    job_ = nullptr;
  }

 private:
  void serve() {
    inside_body = true;
    set_float_mode({});  // a thread starts in the mode of the thread that created it
    std::uint64_t seen = 0;
    for (;;) {
      Job* job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
        if (stopping_) return;
        seen = generation_;
        job = job_;
      }
      job->work();
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  std::uint64_t generation_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
};

// Threads do not survive fork(): a child process builds a pool of its own.
Pool& pool() {
#if defined(__linux__)
  static Pool* shared = nullptr;
  static pid_t owner = 0;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (shared == nullptr || owner != getpid()) {
    shared = new Pool(thread_count() - 1);  // lives as long as the process: idle threads must not be joined at exit
    owner = getpid();
  }
  return *shared;
#else
  static Pool* shared = new Pool(thread_count() - 1);
  return *shared;
#endif
}

}  // namespace

int thread_count() {
  static const int count = [] {
    if (const char* text = std::getenv("ASSAY_THREADS"); text != nullptr && *text != '\0') {
      char* end = nullptr;
      const long value = std::strtol(text, &end, 10);
      require(*end == '\0' && value >= 1 && value <= 4096, "ASSAY_THREADS", text, "a number from 1 to 4096");
      return static_cast<int>(value);
    }
    return processors();
  }();
  return count;
}

void on_this_thread(const std::function<void()>& body) {
  const DefaultFloatMode mode;
  struct Inside {
    const bool before = std::exchange(inside_body, true);
    ~Inside() { inside_body = before; }
  } inside;
  body();
}

CancelledBy::CancelledBy(const std::atomic<bool>& flag) : before_(std::exchange(cancels, &flag)) {}
CancelledBy::~CancelledBy() { cancels = before_; }

void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body) {
  require(grain >= 1, "grain", grain, "a value of at least 1");
  if (count <= 0) return;
  Job job(count, grain, body);
  const DefaultFloatMode mode;
  if (inside_body || count <= grain || thread_count() == 1) {
    job.work();
  } else {
    pool().run(job);
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace assay
