#pragma once
// Processes that are forked to do what may end them: memory that they share, limits, and numbers from one counter.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>

namespace assay::conformance {

// No further process can be made, or one of this program ended early: a fault of the machine.
class ProcessError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory that this process and its later children share, zeros at first. Made and destroyed by one thread. Errors: std::bad_alloc.
class ForkedMemory {
 public:
  explicit ForkedMemory(std::size_t bytes);
  ~ForkedMemory();
  ForkedMemory(const ForkedMemory&) = delete;
  ForkedMemory& operator=(const ForkedMemory&) = delete;
  void* data() const { return data_; }

  // In this process nothing of what it shares with others can be written any more.
  static void make_all_read_only();

 private:
  std::size_t bytes_;
  void* data_;
  ForkedMemory *before_, *behind_ = nullptr;  // in the list of all
};

// `count` values of a type that needs no destructor. They begin as its constructor makes them; those of a type without one as zeros,
// which take no memory until they are written.
template <class T>
class ForkedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit ForkedArray(std::size_t count) : memory_(count * sizeof(T)), values_(static_cast<T*>(memory_.data()), count) {
    if constexpr (!std::is_trivially_default_constructible_v<T>) {
      for (T& each : values_) new (&each) T;
    }
  }
  T& operator[](std::size_t at) const { return values_[at]; }
  std::size_t size() const { return values_.size(); }
  T* begin() const { return values_.data(); }
  T* end() const { return values_.data() + values_.size(); }

 private:
  ForkedMemory memory_;
  std::span<T> values_;
};

// Calls work(i) for every i below `count`, in `jobs` processes; they end with the last one. `progress`, if there is one, is called now and
// then, with the number of those that are done. Returns false if the program was interrupted before all were. Errors: ProcessError for
// a process that cannot be made or that ends early.
bool in_processes(std::int64_t count, int jobs, const std::function<void(std::int64_t)>& work,
                  const std::function<void(std::int64_t)>& progress);

// A child of this process: it ends when its parent does, leaves no core file, prints nothing, and cannot take more memory than now
// and `more_bytes`. Returns its number, or 0 in the child. 0 bytes: no limit. Errors: ProcessError.
int make_child(std::size_t more_bytes);

// Waits for a child of this process. True: it ended with exit code 0.
bool ended_well(int child);

// This process and its children leave no core file when a signal ends them.
void leave_no_core_file();

// From now on the process is ended by a signal after so much of its own processor time, or a long time on the clock. 0: no limit.
// The signal is SIGPROF or SIGALRM.
void limit_time(double seconds);

// Starts the program once more, with memory at the same addresses in every run, where the system allows that: what a mutant does that
// reads or writes beyond its memory is then the same too. Returns at once where it is so already.
void fix_addresses();

// Processor time of this process so far.
double processor_seconds();

}  // namespace assay::conformance
