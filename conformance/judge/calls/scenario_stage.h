#pragma once
// The calls of a scenario on a backend's device: memory that they share, their graphs, and one replay after another.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/cases/scenario.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/memory/case_memory.h"
#include "conformance/judge/memory/given_back.h"
#include "conformance/judge/memory/guarded_buffer.h"
#include "conformance/ops/answer.h"

namespace assay::conformance {

// The result of one replay or one eager run.
struct ScenarioRun {
  assay_status status = ASSAY_OK;
  std::string error;                                                   // the backend's message, and the function that failed
  std::vector<std::string> damage;                                     // canaries written, inputs changed: one line each
  std::vector<std::map<std::string, std::vector<std::byte>>> outputs;  // of each call, by name; empty unless status is ASSAY_OK
};

class ScenarioStage {
 public:
  // Allocates everything. `inputs` are those of round 0 and, as `line`, `scenario` and `specs`, must outlive the stage.
  // Throws BackendError when the backend's own memory, copies or streams fail.
  ScenarioStage(Backend& backend, const CaseLine& line, const Scenario& scenario, const std::vector<Case>& inputs,
                const std::vector<std::vector<OutputSpec>>& specs, std::int64_t algorithm, std::int64_t timeout_ms);
  ScenarioStage(const ScenarioStage&) = delete;
  ScenarioStage& operator=(const ScenarioStage&) = delete;

  const assay_call& call(std::size_t index) const { return members_[index].call; }
  // The fault of an answer to workspace_bytes, or empty.
  const std::string& workspace_fault() const { return workspace_fault_; }

  // After the questions and before any call: what they, or the fills and copies before them, have written; one line each, headed
  // by its cause.
  std::vector<std::string> written_by_questions();

  // Captures every graph, without carrying anything out. Returns nothing, or the fault: a failing call, outputs that were written.
  // `status` is then the failing call's.
  std::optional<std::string> capture(assay_status& status);

  // Work that a run is enqueued behind. Layers on streams of their own each follow other work, and are always waited for.
  enum class Late {
    no,
    waited,    // inputs, poison and calls behind other work; waited for on their stream, then read on another
    unwaited,  // the same, read on their own stream without a wait before
  };
  static std::string text_of(Late late);
  // Puts the inputs in place, poisons the outputs, and launches all graphs, or makes the calls one by one. Every second run goes
  // to other streams than the capture.
  ScenarioRun replay(const std::vector<Case>& inputs, std::uint8_t poison, Late late = Late::no) {
    return run(inputs, poison, true, late);
  }
  ScenarioRun eager(const std::vector<Case>& inputs, std::uint8_t poison, Late late = Late::no) {
    return run(inputs, poison, false, late);
  }

 private:
  struct Input {
    std::string name;
    CaseMemory::Part part = 0;
    bool chained = false;  // an output of another call
    bool owner = false;    // the first that uses its memory
  };
  struct Member {
    std::vector<assay_parameter> parameters;
    std::vector<assay_tensor> inputs, outputs;
    std::vector<Input> sources;
    std::vector<CaseMemory::Part> output_parts;
    std::size_t workspace = 0;  // its number, where call.workspace_bytes > 0
    assay_call call{};
  };
  ScenarioRun run(const std::vector<Case>& inputs, std::uint8_t poison, bool launch, Late late);
  struct Called {
    std::string what;
    CallResult result;
  };
  std::vector<std::unique_ptr<LateStream>> begin(CallSequence& calls, assay_stream* on, std::uint8_t poison, Late late,
                                                 CallResult& written);
  void make(CallSequence& calls, bool launch, bool turned, std::deque<Called>& called);
  bool have_ended(const std::vector<CallResult>& waited, bool turned, ScenarioRun& result);
  void read(assay_stream* stream, const CallResult& fetched, ScenarioRun& result);
  void note(const Called& called, ScenarioRun& result) const;
  void set_inputs(const std::vector<Case>& inputs);
  void write(assay_stream* stream, std::uint8_t poison, std::int64_t piece);
  void prepare(assay_stream* stream, std::uint8_t poison);
  void size_workspaces();
  void take_history(bool give_back);
  assay_stream* stream_of(const ScenarioCall& call, bool turned) const;
  std::string graph_text(std::size_t graph) const;

  Backend& backend_;
  const Scenario& scenario_;
  const std::vector<std::vector<OutputSpec>>& specs_;
  std::int64_t timeout_ms_;
  // At least two, so that graphs are launched on other streams than they were captured on. Destroyed after the memory; also when the constructor throws.
  struct Streams : std::vector<assay_stream*> {
    explicit Streams(Backend& of) : backend(of) {}
    ~Streams();
    void drain();
    Backend& backend;
  } streams_;
  std::string workspace_fault_;
  std::vector<Member> members_;
  CaseMemory memory_;
  std::vector<std::unique_ptr<GuardedBuffer>> history_;
  OwnGraphs graphs_{backend_};
  bool workspaces_filled_ = false;
  int runs_ = 0;
  Drained<Streams> drained_{streams_};
};

}  // namespace assay::conformance
