#pragma once
// Processes that share memory and take numbers from one counter.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>

namespace assay::conformance {

// Memory that this process and its later children share, zeros at first. Made and destroyed by one thread. Errors: std::bad_alloc.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  void* data() const { return data_; }

  // In this process nothing of what it shares with others can be written any more.
  static void make_all_read_only();

 private:
  std::size_t bytes_;
  void* data_;
  SharedMemory *before_, *behind_ = nullptr;  // in the list of all
};

// `count` values of a type that may begin as zeros and needs no destructor.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(std::size_t count) : memory_(count * sizeof(T)), values_(static_cast<T*>(memory_.data()), count) {}
  T& operator[](std::size_t at) const { return values_[at]; }
  std::size_t size() const { return values_.size(); }

 private:
  SharedMemory memory_;
  std::span<T> values_;
};

// Calls work(i) for every i below `count`, in `jobs` processes; they end with the last one. `progress` is called now and then, with
// the number of those that are done. Returns false if the program was interrupted before all were. Errors: golden::MachineError for
// a process that cannot be made or that ends early.
bool in_processes(std::int64_t count, int jobs, const std::function<void(std::int64_t)>& work,
                  const std::function<void(std::int64_t)>& progress);

// A child of this process: it ends when its parent does, leaves no core file, prints nothing, and cannot take more memory than now
// and `more_bytes`. Returns its number, or 0 in the child. Errors: golden::MachineError.
int make_child(std::size_t more_bytes);

// From now on the process is ended by a signal after so much of its own processor time, or a long time on the clock. 0: no limit.
void limit_time(double seconds);

// Starts the program once more, with memory at the same addresses in every run, where the system allows that: what a mutant does that
// reads or writes beyond its memory is then the same too. Returns at once where it is so already.
void fix_addresses();

// Processor time of this process so far.
double processor_seconds();

}  // namespace assay::conformance
