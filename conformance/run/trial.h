#pragma once
// A case on a backend's device: buffers between canaries, the call that points to them, and everything it does to memory.

#include <map>
#include <string>
#include <vector>

#include "conformance/backends/backend.h"
#include "conformance/ops/answer.h"
#include "conformance/run/guarded_buffer.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

struct Attempt {
  assay_status status = ASSAY_FAILED;
  std::string error;                                      // what the backend said when status is not ASSAY_OK
  std::map<std::string, std::vector<std::byte>> outputs;  // by name, whatever the status; empty after a timeout
  std::vector<std::string> damage;                        // canaries written, inputs changed: one line each
};

// Parts of a call, without data. The names, and a text value, must outlive what is made of them.
assay_tensor tensor_of(const std::string& name, Format type, const std::vector<std::int64_t>& shape);
assay_parameter parameter_of(const std::string& name, const golden::Attribute& value);

// What the backend asks for beside a call that is complete but for it; where the answer is none, 0, and why in `fault`.
std::int64_t workspace_bytes_of(Backend& backend, const assay_call& call, std::string& fault);

class Trial {
 public:
  // Allocates everything and copies the inputs. `problem` must outlive the trial. Throws BackendError when the backend's
  // own memory, copies or streams fail.
  // `attributes`, if given, take the place of the problem's, and must outlive the trial too.
  Trial(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& outputs, std::int64_t algorithm,
        std::int64_t timeout_ms, const std::map<std::string, golden::Attribute>* attributes = nullptr);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const assay_call& call() const { return call_; }
  // What was wrong with the answer to workspace_bytes, or empty.
  const std::string& workspace_fault() const { return workspace_fault_; }

  // Fills outputs and workspace with `poison`, calls once, waits, reads everything back. A call that does not finish in
  // time has status ASSAY_TIMEOUT, and its memory is not looked at.
  // `memory`: buffers of an earlier attempt, to be used again.
  Attempt attempt(std::uint8_t poison, std::map<std::string, std::vector<std::byte>> memory = {});

  // Captures the call into a graph without carrying it out. The backend must have capture functions.
  // Throws BackendError when capturing fails, which the message tells from a failing call.
  void capture();
  // As `attempt`, but through the captured graph, after the inputs in device memory have become those of `changed`: the
  // same tensors with other contents. Throws InvalidArgument when a tensor of `changed` has another type or shape.
  Attempt replay(const golden::Case& changed, std::uint8_t poison, std::map<std::string, std::vector<std::byte>> memory = {});

 private:
  void prepare(std::uint8_t poison);
  Attempt collect(const golden::Case& inputs, assay_status launched, std::map<std::string, std::vector<std::byte>> memory);

  Backend& backend_;
  const golden::Case& problem_;
  std::int64_t timeout_ms_;
  // Destroyed after the buffers, which wait on it; also when the constructor throws.
  struct Stream {
    explicit Stream(Backend& of);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    Backend& backend;
    assay_stream* handle = nullptr;
  };
  Stream owned_stream_;
  assay_stream* const stream_ = owned_stream_.handle;
  std::string workspace_fault_;
  std::vector<assay_parameter> parameters_;
  std::vector<std::string> output_names_;
  std::vector<assay_tensor> inputs_, outputs_;
  std::vector<GuardedBuffer> input_buffers_, output_buffers_, workspace_;
  assay_call call_{};
  assay_graph* graph_ = nullptr;
};

}  // namespace assay::conformance
