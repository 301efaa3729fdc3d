#include "conformance/worker/worker.h"

#include <algorithm>
#include <list>
#include <utility>

#include "conformance/backends/backend_handle.h"
#include "conformance/worker/visible_device.h"
#include "reference/support/parallel.h"

namespace assay::conformance::worker {
namespace {

// Workers with room for another context, of built-in backends.
std::mutex workers_mutex;
std::list<std::shared_ptr<Worker>>& workers() {
  static auto* all = new std::list<std::shared_ptr<Worker>>;  // kept warm until the program ends
  return *all;
}

}  // namespace

Worker::Worker(std::string name, std::size_t channels)
    : name_(std::move(name)),
      visible_(OnDevice::current()),
      memory_(std::make_shared<SharedMemory>(channels * sizeof(Channel))),
      used_(channels, false) {
  const bool plug_in = !is_built_in(name_);
  process_ = Process::start(
      worker_command(name_), {std::to_string(channels), plug_in ? kForeign : "unlimited"}, memory_->descriptor(),
      [memory = memory_, channels] {
        for (std::size_t i = 0; i < channels; ++i) wake(static_cast<Channel*>(memory->data())[i].answered);
      },
      environment_on(visible_));
}

Worker::~Worker() { process_->kill(); }

int Worker::take_channel() {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(used_.begin(), used_.end(), false);
  if (found == used_.end()) return -1;
  *found = true;
  return static_cast<int>(found - used_.begin());
}

void Worker::give_channel(int channel) {
  const std::lock_guard lock(mutex_);
  used_[static_cast<std::size_t>(channel)] = false;
}

std::shared_ptr<Worker> worker_with_room(const std::string& name, int& channel) {
  if (!is_built_in(name)) {
    auto made = std::make_shared<Worker>(name, 1);
    channel = made->take_channel();
    return made;
  }
  const std::lock_guard lock(workers_mutex);
  for (auto each = workers().begin(); each != workers().end();) {
    const std::shared_ptr<Worker> worker = *each;
    if (worker->is_spent || worker->process().has_ended()) {
      each = workers().erase(each);
      continue;
    }
    if (worker->name() == name && worker->visible() == OnDevice::current() && (channel = worker->take_channel()) >= 0)
      return worker;
    ++each;
  }
  auto made = std::make_shared<Worker>(name, static_cast<std::size_t>(thread_count()) + 1);
  workers().push_back(made);
  channel = made->take_channel();
  return made;
}

void start_afresh() {
  const std::lock_guard lock(workers_mutex);
  for (const std::shared_ptr<Worker>& each : workers()) each->is_spent = true;
  workers().clear();
}

}  // namespace assay::conformance::worker
