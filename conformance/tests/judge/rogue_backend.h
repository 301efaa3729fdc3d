#pragma once
// A backend that misbehaves on demand: the reference, with functions that a test replaces. One instance at a time.

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

class Rogue {
 public:
  Rogue() { current_ = this; }
  ~Rogue() { current_ = nullptr; }
  Rogue(const Rogue&) = delete;
  Rogue& operator=(const Rogue&) = delete;

  // Each replaces the reference's function; empty: the reference's own.
  std::function<assay_status(const assay_call&)> supports, execute;
  std::function<assay_status()> synchronize;
  std::function<assay_status(std::int64_t bytes)> allocate;  // ASSAY_OK: go on and allocate
  std::function<void(assay_numerics&)> state;                // changes what the reference states
  std::function<void(const assay_call&)> asked, sized;       // before numerics and workspace_bytes
  std::function<void*(void*)> given;                         // what an allocation returns
  std::function<assay_status()> event_create, event_record;
  std::function<assay_status(double& milliseconds)> event_elapsed;  // with the reference's answer
  std::int64_t workspace = 0;
  std::string error;            // the text of last_error, if not empty
  bool silent = false;          // last_error returns an empty text
  bool capturing = false;       // between capture_begin and capture_end
  std::int64_t not_filled = 0;  // bytes at the end of each fill that are not written

  int calls = 0;               // of execute, this one included
  std::int64_t allocated = 0;  // buffers that are not released
  std::map<void*, std::int64_t> buffers;

  // The reference's own function.
  assay_status honest(const assay_call& call) { return reference_backend()->execute(context_, stream_, &call); }
  assay_status honest_supports(const assay_call& call) { return reference_backend()->supports(context_, &call); }

  static const assay_backend& table() {
    static const assay_backend made = [] {
      assay_backend table = *reference_backend();
      table.name = "rogue";
      table.description = "the reference, with faults";
      table.last_error = [](assay_context* context) {
        if (current_->silent) return "";
        return current_->error.empty() ? reference_backend()->last_error(context) : current_->error.c_str();
      };
      table.allocate = [](assay_context* context, std::int64_t bytes, void** data) {
        const assay_status status = current_->allocate ? current_->allocate(bytes) : ASSAY_OK;
        if (status != ASSAY_OK) return status;
        const assay_status made = reference_backend()->allocate(context, bytes, data);
        current_->buffers[*data] = bytes;
        if (current_->given) *data = current_->given(*data);
        return made;
      };
      table.release = [](assay_context* context, void* data) {
        current_->buffers.erase(data);
        reference_backend()->release(context, data);
      };
      table.synchronize = [](assay_context* context, assay_stream* stream, std::int64_t timeout) {
        return current_->synchronize ? current_->synchronize() : reference_backend()->synchronize(context, stream, timeout);
      };
      table.fill = [](assay_context* context, assay_stream* stream, void* data, std::uint8_t value, std::int64_t bytes) {
        return reference_backend()->fill(context, stream, data, value, std::max<std::int64_t>(0, bytes - current_->not_filled));
      };
      table.event_create = [](assay_context* context, assay_event** event) {
        const assay_status status = current_->event_create ? current_->event_create() : ASSAY_OK;
        return status == ASSAY_OK ? reference_backend()->event_create(context, event) : status;
      };
      table.event_record = [](assay_context* context, assay_event* event, assay_stream* stream) {
        const assay_status status = current_->event_record ? current_->event_record() : ASSAY_OK;
        return status == ASSAY_OK ? reference_backend()->event_record(context, event, stream) : status;
      };
      table.event_elapsed = [](assay_context* context, assay_event* start, assay_event* stop, double* milliseconds) {
        const assay_status status = reference_backend()->event_elapsed(context, start, stop, milliseconds);
        return current_->event_elapsed ? current_->event_elapsed(*milliseconds) : status;
      };
      table.capture_begin = [](assay_context* context, assay_stream* stream) {
        current_->capturing = true;
        return reference_backend()->capture_begin(context, stream);
      };
      table.capture_end = [](assay_context* context, assay_stream* stream, assay_graph** graph) {
        current_->capturing = false;
        return reference_backend()->capture_end(context, stream, graph);
      };
      table.supports = [](assay_context* context, const assay_call* call) {
        current_->context_ = context;
        return current_->supports ? current_->supports(*call) : reference_backend()->supports(context, call);
      };
      table.numerics = [](assay_context* context, const assay_call* call, assay_numerics* numerics) {
        if (current_->asked) current_->asked(*call);
        const assay_status status = reference_backend()->numerics(context, call, numerics);
        if (current_->state) current_->state(*numerics);
        return status;
      };
      table.workspace_bytes = [](assay_context*, const assay_call* call, std::int64_t* bytes) {
        if (current_->sized) current_->sized(*call);
        *bytes = current_->workspace;
        return ASSAY_OK;
      };
      table.execute = [](assay_context* context, assay_stream* stream, const assay_call* call) {
        current_->context_ = context;
        current_->stream_ = stream;
        ++current_->calls;
        return current_->execute ? current_->execute(*call) : reference_backend()->execute(context, stream, call);
      };
      return table;
    }();
    return made;
  }

 private:
  static inline Rogue* current_ = nullptr;
  assay_context* context_ = nullptr;
  assay_stream* stream_ = nullptr;
};

// The tensor of this name in a call; a call without it is a fault of the test.
inline const assay_tensor& tensor(const assay_call& call, const std::string& name) {
  for (int i = 0; i < call.output_count; ++i) {
    if (name == call.outputs[i].name) return call.outputs[i];
  }
  for (int i = 0; i < call.input_count; ++i) {
    if (name == call.inputs[i].name) return call.inputs[i];
  }
  throw std::logic_error("the call has no tensor " + name);
}
inline std::uint8_t* bytes(const assay_call& call, const std::string& name) {
  return static_cast<std::uint8_t*>(tensor(call, name).data);
}

// A call of the same op on other outputs, which the reference executes without the harness knowing.
class Elsewhere {
 public:
  explicit Elsewhere(const assay_call& call) : call_(call), outputs_(call.outputs, call.outputs + call.output_count) {
    for (assay_tensor& each : outputs_) {
      storage_.push_back(std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(each.bytes) + 1));
      if (each.bytes > 0) std::memcpy(storage_.back().get(), each.data, static_cast<std::size_t>(each.bytes));
      each.data = each.bytes > 0 ? storage_.back().get() : nullptr;
    }
    call_.outputs = outputs_.data();
  }
  const assay_call& call() const { return call_; }

 private:
  assay_call call_;
  std::vector<assay_tensor> outputs_;
  std::vector<std::unique_ptr<std::uint8_t[]>> storage_;
};

// Judges a case line on a rogue backend, as the program does.
inline Judgement judge_text(Rogue&, const std::string& text, JudgeOptions options = {}) {
  const CaseLine line = parse_case_line(text);
  const std::vector<std::string> wanted = wanted_outputs(line);
  options.wanted = &wanted;
  options.order_free = check_kind(line) == CheckKind::order_free;
  options.unit_probes = is_unit_probe(line);
  options.title = to_text(line);
  options.reproduce = "assay repro";
  Backend backend(Rogue::table());
  return judge(backend, generate(line), nullptr, options);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace assay::conformance
