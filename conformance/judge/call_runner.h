#pragma once
// A case on a backend's device: its memory, the call that points to it, and everything that the call does to it.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/call_sequence.h"
#include "conformance/judge/memory/case_memory.h"
#include "conformance/judge/memory/given_back.h"
#include "conformance/ops/answer.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

struct Attempt {
  assay_status status = ASSAY_FAILED;
  std::string error;                                      // the backend's message when status is not ASSAY_OK
  std::map<std::string, std::vector<std::byte>> outputs;  // by name, for any status; empty if memory was not read
  std::vector<std::string> damage;  // canaries written, inputs changed, memory that cannot be read: one line each
};

// Parts of a call, without data. Names and text values must outlive what is made of them.
assay_tensor tensor_of(const std::string& name, Format type, const std::vector<std::int64_t>& shape);
assay_parameter parameter_of(const std::string& name, const Attribute& value);

// Bytes of workspace that the backend requests for the call; for an invalid answer 0, with the reason in `fault`.
std::int64_t workspace_bytes_of(Backend& backend, const assay_call& call, std::string& fault);

// A number that belongs to a case and selects what varies from case to case.
std::uint64_t variety_of(const std::string& op, const std::string& name);

// Whether the call is also made on a busy stream.
inline bool is_made_late(std::uint64_t variety) { return variety % 6 == 0; }

class CallRunner {
 public:
  // Allocates everything, copies the inputs and poisons the rest. `problem` must outlive the runner. Throws BackendError when
  // the backend's own memory, copies or streams fail.
  // `attributes`, if given, take the place of the problem's, and must outlive the runner too.
  CallRunner(Backend& backend, const Case& problem, const std::vector<OutputSpec>& outputs, std::int64_t algorithm,
             std::int64_t timeout_ms, const std::map<std::string, Attribute>* attributes = nullptr,
             CaseMemory::Gaps gaps = CaseMemory::Gaps::usual);
  CallRunner(const CallRunner&) = delete;
  CallRunner& operator=(const CallRunner&) = delete;

  const assay_call& call() const { return call_; }
  // The fault of the answer to workspace_bytes, or empty.
  const std::string& workspace_fault() const { return workspace_fault_; }
  std::uint64_t variety() const { return variety_; }

  // What the backend answered to workspace_bytes(), supports() and numerics(), which are asked as the runner is made.
  const Questions& questions() const { return questions_; }
  // What these have written, and with `asked_more` what was asked since, list_algorithms() for one: before the first attempt; may
  // be nothing; one line each. Names the one that does it where it does so again; where memory differs with no question asked, the
  // fills, copies and waits that left it so.
  std::vector<std::string> written_by_questions(bool asked_more = false);

  // Fills outputs and workspace with `poison`, calls once, waits, reads everything back, also after a wait that failed. A call that
  // does not finish in time has status ASSAY_TIMEOUT; its memory is not checked, nor that of a lost device.
  // In some cases the workspace holds zeros instead of 0xa5.
  // `memory`: buffers of an earlier attempt, to be used again.
  using Outputs = std::map<std::string, std::vector<std::byte>>;
  Attempt attempt(std::uint8_t poison, Outputs memory = {});

  // How a call is made and read.
  struct Mode {
    bool graph = false;      // launched as captured, instead of made
    bool late = false;       // inputs, poison and call are enqueued behind other work: LateStream
    bool elsewhere = false;  // with `graph`: launched on another stream than captured. With `late`: waited for on its stream and
                             // then read on another; without, read on its own stream and not waited for before
    std::function<void(assay_stream* on)> between =
        {};  // on the stream, before the inputs are written, and before and after the call
  };
  // "behind other work on its stream, read without a wait in between"; empty for none of these.
  static std::string text_of(const Mode& mode);
  // As `attempt`, after the inputs in device memory have become those of `changed`: the same tensors with other contents.
  // Throws InvalidArgument when a tensor of `changed` has another type or shape.
  Attempt attempt(const Case& changed, std::uint8_t poison, const Mode& mode, Outputs memory = {});

  // Makes `call`, which must be refused, over `poison`. Everything that it writes is damage. No outputs.
  Attempt refused(const assay_call& call, std::uint8_t poison);

  // Captures the call into a graph without carrying it out. The backend must have capture functions. `first`, if given, is called
  // on the capturing stream before the call is made.
  // Throws BackendError when capturing fails; the message distinguishes this from a failing call. Returns what it has written.
  std::vector<std::string> capture(const std::function<void(assay_stream*)>& first = {});

 private:
  std::uint8_t workspace_poison(std::uint8_t poison) const;
  Attempt make(std::uint8_t poison, const Mode& mode, Outputs memory);
  void write(assay_stream* stream, std::uint8_t poison, std::int64_t piece = 0);
  void synchronize(assay_stream* stream, const std::string& doing);
  assay_stream* stream(bool other);
  void ask();
  bool has_ended(const CallResult& called, const CallResult* waited, Attempt& result);
  static bool can_be_read(const CallResult& waited);
  template <class Read>
  static void read_after_failure(Attempt& result, Read read);
  void read(assay_stream* on, const CallResult& fetched, Attempt& result, Outputs memory);

  Backend& backend_;
  const Case& problem_;
  std::int64_t timeout_ms_;
  std::uint64_t variety_;
  // Destroyed after the memory, whose copies are enqueued on them; also when the constructor throws.
  struct Streams : std::vector<std::shared_ptr<assay_stream*>> {
    explicit Streams(Backend& of) : backend(of) {}
    ~Streams();
    void drain();
    Backend& backend;
  } streams_;
  std::size_t other_stream_ = 1;  // the other stream than the first: three exist where two launches need one each
  std::string workspace_fault_;
  std::vector<assay_parameter> parameters_;
  std::vector<std::string> output_names_;
  std::vector<assay_tensor> inputs_, outputs_;
  CaseMemory memory_;
  std::vector<CaseMemory::Part> input_parts_, output_parts_;
  Questions questions_;
  std::optional<std::vector<std::string>> seen_;  // what they have written, once it is known
  std::optional<std::uint8_t> prepared_;          // the poison that everything holds, if no call was made since
  assay_call call_{};
  OwnGraphs graphs_{backend_};
  Drained<Streams> drained_{streams_};
};

}  // namespace assay::conformance
