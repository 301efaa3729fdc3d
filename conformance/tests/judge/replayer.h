#pragma once
// A backend whose graphs, workspaces or flags a test changes, and the changes that several faults have in common.

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/backends/host_backend.h"
#include "conformance/judge/calls/scenario.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {

using Recorded = assay_graph::Recorded;

// The reference, with graphs that a test changes. One instance at a time.
class Replayer {
 public:
  Replayer() { current_ = this; }
  ~Replayer() { current_ = nullptr; }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  // Each replaces the right behaviour; empty: the right behaviour.
  std::function<void(const Recorded&)> captured;                                   // a call was recorded
  std::function<void(const assay_graph&, std::size_t index, int launch)> perform;  // one call of a graph's launch, from 1
  std::function<void(const assay_graph&, assay_stream*, int launch)> launch;       // a whole launch
  std::function<void(const assay_call&)> eager;
  std::function<bool(assay_stream*)> in_time;  // of synchronize
  std::int64_t workspace = 0;
  std::function<void()> allocated;

  std::map<const assay_graph*, int> launches;

  void honest(const assay_call& call) {
    assay_stream plain;
    if (reference_backend()->execute(context_, &plain, &call) != ASSAY_OK)
      throw std::logic_error(reference_backend()->last_error(context_));
  }

  static const assay_backend& table() {
    static const assay_backend made = [] {
      assay_backend table = *reference_backend();
      table.name = "replayer";
      table.allocate = [](assay_context* context, std::int64_t bytes, void** data) {
        if (current_->allocated) current_->allocated();
        return reference_backend()->allocate(context, bytes, data);
      };
      table.workspace_bytes = [](assay_context*, const assay_call*, std::int64_t* bytes) {
        *bytes = current_->workspace;
        return ASSAY_OK;
      };
      table.execute = [](assay_context* context, assay_stream* stream, const assay_call* call) {
        current_->context_ = context;
        if (stream->recording == nullptr) {
          current_->eager ? current_->eager(*call) : current_->honest(*call);
          return ASSAY_OK;
        }
        const assay_status status = reference_backend()->execute(context, stream, call);
        if (status == ASSAY_OK && current_->captured) current_->captured(stream->recording->calls.back());
        return status;
      };
      table.graph_launch = [](assay_context* context, assay_graph* graph, assay_stream* stream) {
        current_->context_ = context;
        const int launch = ++current_->launches[graph];
        if (current_->launch) {
          current_->launch(*graph, stream, launch);
          return ASSAY_OK;
        }
        for (std::size_t i = 0; i < graph->calls.size(); ++i) {
          current_->perform ? current_->perform(*graph, i, launch) : current_->honest(graph->calls[i].call);
        }
        return ASSAY_OK;
      };
      table.synchronize = [](assay_context*, assay_stream* stream, std::int64_t) {
        return current_->in_time && !current_->in_time(stream) ? ASSAY_TIMEOUT : ASSAY_OK;
      };
      return table;
    }();
    return made;
  }

 private:
  static inline Replayer* current_ = nullptr;
  assay_context* context_ = nullptr;
};

inline Judgement judged(const std::string& text) {
  const CaseLine line = parse_case_line(text);
  JudgeOptions options;
  options.title = to_text(line);
  options.reproduce = "assay repro";
  options.timeout_ms = 200;
  Backend backend(Replayer::table());
  return judge_scenario(backend, line, options);
}

// ---- pieces of faults ---------------------------------------------------------------------------------------------

inline bool is(const assay_call& call, const std::string& op) { return call.op == op; }
inline bool is_layout(const assay_call& call, const std::string& layout) {
  for (int i = 0; i < call.parameter_count; ++i) {
    if (call.parameters[i].name == std::string("layout")) return call.parameters[i].text == layout;
  }
  return false;
}
inline bool has_input(const assay_call& call, const std::string& name) {
  return std::any_of(call.inputs, call.inputs + call.input_count, [&](const assay_tensor& each) { return each.name == name; });
}
inline bool has_output(const assay_call& call, const std::string& name) {
  return std::any_of(call.outputs, call.outputs + call.output_count, [&](const assay_tensor& each) { return each.name == name; });
}
inline std::int64_t groups_of(const assay_call& call) { return tensor(call, "splits").shape[0]; }

// The call on other inputs.
class Instead {
 public:
  explicit Instead(const assay_call& call) : call_(call), inputs_(call.inputs, call.inputs + call.input_count) {
    call_.inputs = inputs_.data();
  }
  void replace(const std::string& name, const void* data) {
    for (assay_tensor& each : inputs_) {
      if (each.name == name) each.data = const_cast<void*>(data);
    }
  }
  const assay_call& call() const { return call_; }

 private:
  assay_call call_;
  std::vector<assay_tensor> inputs_;
};

// Inputs that `frozen` selects by name keep the contents of the capture.
inline void freeze(Replayer& replayer, std::function<bool(const std::string&)> frozen) {
  auto copies = std::make_shared<std::map<const Recorded*, std::map<std::string, std::vector<std::uint8_t>>>>();
  replayer.captured = [copies, frozen](const Recorded& recorded) {
    for (const assay_tensor& each : recorded.inputs) {
      const auto* data = static_cast<const std::uint8_t*>(each.data);
      if (frozen(each.name)) (*copies)[&recorded][each.name].assign(data, data + each.bytes);
    }
  };
  replayer.perform = [copies, &replayer](const assay_graph& graph, std::size_t index, int) {
    Instead call(graph.calls[index].call);
    for (const auto& [name, data] : (*copies)[&graph.calls[index]]) call.replace(name, data.data());
    replayer.honest(call.call());
  };
}

// Each call is changed by `change`, eager and replayed.
inline void always(Replayer& replayer, std::function<void(const assay_call&)> change) {
  replayer.eager = change;
  replayer.perform = [change](const assay_graph& graph, std::size_t index, int) { change(graph.calls[index].call); };
}

inline void spoil_last_group(const assay_call& call, const std::string& output) {
  const assay_tensor& made = tensor(call, output);
  static_cast<std::uint8_t*>(made.data)[made.bytes - made.bytes / groups_of(call)] ^= 1;
}

// The flag as an input of `call`, or null.
inline float* flag_of(const assay_call& call) {
  return has_input(call, "noop") ? reinterpret_cast<float*>(bytes(call, "noop")) : nullptr;
}

inline void with_flag(Replayer& replayer, const assay_call& call, float value) {
  Instead other(call);
  other.replace("noop", &value);
  replayer.honest(other.call());
}

}  // namespace assay::conformance
