#pragma once
// A backend that is asynchronous on the host: every stream is a thread, and enqueued work is done later and in order. It has one
// fault at a time. One instance at a time.

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/backends/host_backend.h"

namespace assay::conformance {

// A queue of work for one thread.
class Queue {
 public:
  Queue() : thread_([this] { work(); }) {}
  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::thread thread_;
};

class Late {
 public:
  Late() { current_ = this; }
  ~Late() { current_ = nullptr; }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  bool runs_elsewhere = false;           // calls are made on a stream of the backend's own
  bool launches_elsewhere = false;       // graphs are launched there
  bool launches_where_captured = false;  // graphs are launched on the stream of their capture
  bool later_calls_elsewhere = false;    // all calls of a graph but the first
  bool poor_synchronize = false;         // returns at once
  bool poor_second_synchronize = false;  // returns at once, except on the first stream of a context
  bool poor_copy_to_host = false;        // copies at once
  bool copies_elsewhere = false;         // copies to the device are made on a stream of the backend's own
  bool fills_elsewhere = false;
  bool event_frees_stream = false;  // work after an event does not wait for work before it

  static const assay_backend& table();

 private:
  Queue& of(assay_stream* stream) {
    std::unique_ptr<Queue>& queue = queues_[stream];
    if (queue == nullptr) queue = std::make_unique<Queue>();
    return *queue;
  }
  void enqueue(assay_stream* stream, bool elsewhere, std::function<void()> task) {
    (elsewhere ? own_ : of(stream)).add(std::move(task));
  }
  void wait() {
    for (const auto& [stream, queue] : queues_) queue->wait();
    own_.wait();
  }
  static void perform(const assay_graph& graph, assay_context* context) { perform(graph, context, 0, graph.calls.size()); }
  static void perform(const assay_graph& graph, assay_context* context, std::size_t begin, std::size_t end) {
    std::size_t at = 0;
    for (const assay_graph::Recorded& each : graph.calls) {
      assay_stream plain;
      if (at >= begin && at < end) reference_backend()->execute(context, &plain, &each.call);
      ++at;
    }
  }

  static inline Late* current_ = nullptr;
  Queue own_;
  std::map<assay_stream*, std::unique_ptr<Queue>> queues_;
  std::map<assay_graph*, assay_stream*> captured_on_;
  assay_stream* first_ = nullptr;
  assay_stream* freed_ = nullptr;
};

inline const assay_backend& Late::table() {
  static const assay_backend made = [] {
    assay_backend table = *reference_backend();
    table.name = "late";
    table.copy_to_device = [](assay_context*, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
      // As with pageable memory: small copies return at once, large ones block the caller.
      auto taken = std::make_shared<std::vector<std::uint8_t>>(static_cast<const std::uint8_t*>(from),
                                                               static_cast<const std::uint8_t*>(from) + bytes);
      current_->enqueue(stream, current_->copies_elsewhere, [=] { std::memcpy(to, taken->data(), taken->size()); });
      if (bytes > 65536) (current_->copies_elsewhere ? current_->own_ : current_->of(stream)).wait();
      return ASSAY_OK;
    };
    table.copy_to_host = [](assay_context*, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
      const auto copy = [=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); };
      if (current_->poor_copy_to_host) {
        copy();
      } else {
        current_->enqueue(stream, false, copy);
      }
      return ASSAY_OK;
    };
    table.fill = [](assay_context*, assay_stream* stream, void* to, std::uint8_t value, std::int64_t bytes) {
      current_->enqueue(stream, current_->fills_elsewhere, [=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::memset(to, value, static_cast<std::size_t>(bytes));
      });
      return ASSAY_OK;
    };
    table.stream_create = [](assay_context* context, assay_stream** stream) {
      const assay_status status = reference_backend()->stream_create(context, stream);
      current_->queues_.erase(*stream);
      if (current_->first_ == nullptr) current_->first_ = *stream;
      return status;
    };
    table.stream_destroy = [](assay_context* context, assay_stream* stream) {
      current_->of(stream).wait();
      current_->queues_.erase(stream);
      if (current_->first_ == stream) current_->first_ = nullptr;
      reference_backend()->stream_destroy(context, stream);
    };
    // Whatever the fault, memory in use is not released: these functions wait for the device, as device runtimes do.
    table.release = [](assay_context* context, void* data) {
      current_->wait();
      reference_backend()->release(context, data);
    };
    table.graph_destroy = [](assay_context* context, assay_graph* graph) {
      current_->wait();
      reference_backend()->graph_destroy(context, graph);
    };
    table.close = [](assay_context* context) {
      current_->wait();
      reference_backend()->close(context);
    };
    table.event_record = [](assay_context* context, assay_event* event, assay_stream* stream) {
      current_->freed_ = current_->event_frees_stream ? stream : nullptr;
      return reference_backend()->event_record(context, event, stream);
    };
    table.synchronize = [](assay_context*, assay_stream* stream, std::int64_t) {
      const bool poor = current_->poor_synchronize || (current_->poor_second_synchronize && stream != current_->first_);
      if (!poor) current_->of(stream).wait();
      return ASSAY_OK;
    };
    table.execute = [](assay_context* context, assay_stream* stream, const assay_call* call) {
      if (stream->recording != nullptr) return reference_backend()->execute(context, stream, call);
      const assay_status status = reference_backend()->supports(context, call);
      if (status != ASSAY_OK) return status;
      auto graph = std::make_shared<assay_graph>();  // a copy of the call
      host::record(*graph, *call);
      current_->enqueue(stream, current_->runs_elsewhere || stream == current_->freed_, [=] { perform(*graph, context); });
      current_->freed_ = nullptr;
      return ASSAY_OK;
    };
    table.capture_end = [](assay_context* context, assay_stream* stream, assay_graph** graph) {
      const assay_status status = reference_backend()->capture_end(context, stream, graph);
      current_->captured_on_[*graph] = stream;
      return status;
    };
    table.graph_launch = [](assay_context* context, assay_graph* graph, assay_stream* stream) {
      assay_stream* const on = current_->launches_where_captured ? current_->captured_on_.at(graph) : stream;
      if (current_->later_calls_elsewhere && graph->calls.size() > 1) {
        current_->enqueue(on, false, [=] { perform(*graph, context, 0, 1); });
        current_->enqueue(on, true, [=] { perform(*graph, context, 1, graph->calls.size()); });
        return ASSAY_OK;
      }
      current_->enqueue(on, current_->launches_elsewhere, [=] { perform(*graph, context); });
      return ASSAY_OK;
    };
    return table;
  }();
  return made;
}

}  // namespace assay::conformance
