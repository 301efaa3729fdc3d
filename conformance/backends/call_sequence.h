#pragma once
// Calls in sequence whose results are requested together: a worker receives them in one message.

#include <cstdint>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/questions.h"

namespace assay::conformance {

// Results are filled in by finish() at the latest, and must live until then. If a wait fails or the device is lost, no call
// after it is made: its result says so.
class CallSequence {
 public:
  explicit CallSequence(Backend& backend) : backend_(backend) {}
  ~CallSequence();
  CallSequence(const CallSequence&) = delete;
  CallSequence& operator=(const CallSequence&) = delete;

  // The calls that follow are made regardless of its status, unless the device is lost. Errors of all of these: BackendFault.
  void execute(assay_stream* stream, const assay_call& call, CallResult& result);
  void launch(assay_graph* graph, assay_stream* stream, CallResult& result);
  // If the call must get a workspace first, the calls after it are not made.
  void ask(const assay_call& call, Questions& questions);
  void synchronize(assay_stream* stream, std::int64_t timeout_ms, CallResult& result);
  // Copies and fills, which `body` enqueues with the functions of the table.
  template <class Body>
  void enqueue(Body body) {
    if (!over_) body();
  }
  // Makes the remaining calls. Errors: BackendFault; BackendError for a copy or fill that failed.
  void finish();

 private:
  template <class Body>
  void make(CallResult& result, Body body);

  Backend& backend_;
  bool over_ = false, pending_ = false;
};

}  // namespace assay::conformance
