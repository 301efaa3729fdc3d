#pragma once
// One context of the backend in a worker, driven by the commands of one channel.

#include <string>

#include "conformance/backends/call_layout.h"
#include "conformance/worker/wire.h"
#include "reference/support/float_mode.h"

namespace assay::conformance::worker {

// The library of this process, once it is loaded; the sessions of all channels share it.
struct Loaded {
  void* library = nullptr;               // null for a backend that is built in
  const assay_backend* table = nullptr;  // `known`, once there is one
  assay_backend known{};                 // as this build knows it
};

class Session {
 public:
  Session(Channel& channel, Loaded& loaded) : channel_(channel), loaded_(loaded) {}
  // Never returns.
  [[noreturn]] void serve();

 private:
  void answer_batch();
  void execute(Function function, Reader& commands);
  void execute_load(Reader& commands);
  void execute_memory(Function function, Reader& commands);
  void execute_question(Function function, Reader& commands);
  void execute_questions(Reader& commands);
  void execute_list(Function function, Reader& commands);
  void execute_stream(Function function, Reader& commands);

  // Makes one call of the table, and notes what it does beside returning.
  template <class Body>
  void call(Function function, Body body);
  // The same for one that gives a status. last_error is asked at once where it is not ASSAY_OK.
  template <class Body>
  void status_of(Function function, Body body);
  void note(Fault fault, Function function, std::string text);

  Channel& channel_;
  Loaded& loaded_;
  const assay_backend* table_ = nullptr;
  ArraySizes sizes_;  // the backend's
  assay_context* context_ = nullptr;
  volatile std::uint64_t calls_ = 0;

  // Of the batch that is being carried out.
  Fault fault_ = Fault::none;
  Function faulty_ = Function::none;
  std::string fault_text_;
  assay_status status_ = ASSAY_OK;  // of the last command
  bool over_ = false;               // nothing after it is executed, regardless of its status
  std::string error_;
  Writer answer_;  // of the last command
};

// "flush-to-zero and denormals-are-zero on, rounding upward": what differs from the default.
std::string describe(const FloatMode& mode);

}  // namespace assay::conformance::worker
