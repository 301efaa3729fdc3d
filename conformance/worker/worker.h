#pragma once
// Worker processes, and the channels on which contexts of backends use them.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "conformance/worker/process.h"
#include "conformance/worker/wire.h"

namespace assay::conformance::worker {

// A process with one backend loaded, and its channels.
class Worker {
 public:
  // `channels`: contexts that it can have at the same time, which is 1 for a library that is not ours.
  // It sees the devices that OnDevice names.
  Worker(std::string name, std::size_t channels);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Number of a channel that nothing uses, or -1.
  int take_channel();
  void give_channel(int channel);
  Channel& channel(int number) const { return static_cast<Channel*>(memory_->data())[number]; }
  Process& process() const { return *process_; }
  const std::string& name() const { return name_; }
  // The device that it sees; empty: all of them.
  const std::string& visible() const { return visible_; }

  // Cases that were begun on it, of all channels.
  std::atomic<int> cases = 0;
  // Nothing further is asked of it: it has ended, or its device is lost.
  std::atomic<bool> is_spent = false;

  // What the loading found out; empty until then.
  struct Library {
    bool loaded = false;
    std::string name, description, float_mode;
    bool captures = false, has_events = false, has_algorithms = false, has_axes = false;
  } library;
  std::mutex loading;

 private:
  const std::string name_, visible_;
  const std::shared_ptr<SharedMemory> memory_;
  std::shared_ptr<Process> process_;
  std::mutex mutex_;
  std::vector<bool> used_;
};

// A worker of backend `name`, which sees what OnDevice names, and a channel of it that nothing uses. Built-in backends share a worker as long as it has room; a
// library gets a new one.
std::shared_ptr<Worker> worker_with_room(const std::string& name, int& channel);

// Contexts opened from here on are in processes that have served no case.
void start_afresh();

}  // namespace assay::conformance::worker
