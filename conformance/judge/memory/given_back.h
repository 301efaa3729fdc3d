#pragma once
// What a case has taken from a backend, and the order in which it is given back.

#include <vector>

#include "conformance/backends/backend.h"

namespace assay::conformance {

// Graphs that end with the case; left behind, like all else, where the context was given up.
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

// The last member of a case, so destroyed first, also when its constructor throws: nothing is given back while enqueued work may
// use it.
template <class Streams>
struct Drained {
  Streams& streams;
  ~Drained() { streams.drain(); }
};

}  // namespace assay::conformance
