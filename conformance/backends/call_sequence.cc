#include "conformance/backends/call_sequence.h"

#include "conformance/worker/call.h"
#include "conformance/worker/remote.h"

namespace assay::conformance {
namespace {

using worker::Function;
using worker::OnFailure;
using worker::Writer;

void put(Writer& to, const void* pointer) { to.put(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer))); }

worker::Remote::Take into(CallResult& result) {
  return [&result](assay_status status, const std::string& error, worker::Reader&) { result = {true, status, error}; };
}

}  // namespace

// An exception ended the sequence: results must not be filled in later.
CallSequence::~CallSequence() {
  try {
    finish();
  } catch (const BackendError&) {}
}

// In this process.
template <class Body>
void CallSequence::make(CallResult& result, Body body) {
  if (over_) return;
  result.made = true;
  result.status = body();
  if (result.status != ASSAY_OK) result.error = backend_.last_error();
  over_ = result.status == ASSAY_DEVICE_LOST;
}

void CallSequence::execute(assay_stream* stream, const assay_call& call, CallResult& result) {
  result = {};
  if (backend_.remote_ == nullptr)
    return make(result, [&] { return backend_.table().execute(backend_.context(), stream, &call); });
  pending_ = true;
  const auto fill = [&](Writer& to) { put(to, stream), put_call(to, call); };
  backend_.remote_->later(Function::execute, OnFailure::go_on, fill, into(result));
}

void CallSequence::launch(assay_graph* graph, assay_stream* stream, CallResult& result) {
  result = {};
  if (backend_.remote_ == nullptr)
    return make(result, [&] { return backend_.table().graph_launch(backend_.context(), graph, stream); });
  pending_ = true;
  const auto fill = [&](Writer& to) { put(to, graph), put(to, stream); };
  backend_.remote_->later(Function::graph_launch, OnFailure::go_on, fill, into(result));
}

void CallSequence::ask(const assay_call& call, Questions& questions) {
  if (backend_.remote_ != nullptr) {
    pending_ = true;
    return backend_.remote_->questions_later(call, questions);
  }
  ask_questions(backend_.table(), backend_.context(), call, questions,
                [&](Question, CallResult& result, auto body) { make(result, body); });
  over_ = over_ || needs_workspace(questions);
}

void CallSequence::synchronize(assay_stream* stream, std::int64_t timeout_ms, CallResult& result) {
  result = {};
  if (backend_.remote_ != nullptr) {
    pending_ = true;
    return backend_.remote_->synchronize_later(stream, timeout_ms, [&result](assay_status status, const std::string& error) {
      result = {true, status, error};
    });
  }
  make(result, [&] { return backend_.table().synchronize(backend_.context(), stream, timeout_ms); });
  over_ = over_ || (result.made && result.status != ASSAY_OK);
}

void CallSequence::finish() {
  if (pending_) backend_.remote_->flush();
  pending_ = false;
}

}  // namespace assay::conformance
