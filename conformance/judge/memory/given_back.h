#pragma once
// Resources that a case has taken from a backend, released in a safe order.

#include <vector>

#include "conformance/backends/backend_handle.h"

namespace assay::conformance {

// Graphs of the case; abandoned, like all its resources, if the context was abandoned.
class OwnGraphs : public std::vector<assay_graph*> {
 public:
  explicit OwnGraphs(Backend& of) : backend_(of) {}
  ~OwnGraphs() {
    if (backend_.is_given_up()) return;
    for (assay_graph* each : *this) backend_.table().graph_destroy(backend_.context(), each);
  }
  OwnGraphs(const OwnGraphs&) = delete;
  OwnGraphs& operator=(const OwnGraphs&) = delete;

 private:
  Backend& backend_;
};

// The last member of a case, so destroyed first, also when its constructor throws: nothing is released while enqueued work may
// use it.
template <class Streams>
struct Drained {
  Streams& streams;
  ~Drained() { streams.drain(); }
};

}  // namespace assay::conformance
