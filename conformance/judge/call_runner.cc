#include "conformance/judge/call_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "conformance/backends/call_layout.h"
#include "conformance/judge/calls/late_stream.h"
#include "conformance/judge/calls/questions_blame.h"
#include "conformance/judge/memory/guarded_buffer.h"
#include "reference/types/error.h"

namespace assay::conformance {

assay_tensor tensor_of(const std::string& name, Format type, const std::vector<std::int64_t>& shape) {
  require(shape.size() <= 4, name, static_cast<std::int64_t>(shape.size()), "a tensor of rank 4 at most");
  assay_tensor tensor{};
  tensor.name = name.c_str();
  tensor.dtype = static_cast<assay_dtype>(type);
  tensor.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    tensor.shape[i] = shape[i];
    count *= shape[i];
  }
  tensor.bytes = type == Format::e2m1 ? count : bytes_of(type, count);
  return tensor;
}

assay_parameter parameter_of(const std::string& name, const Attribute& value) {
  assay_parameter parameter{};
  parameter.name = name.c_str();
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    parameter.kind = ASSAY_INTEGER;
    parameter.integer = *integer;
  } else if (const auto* real = std::get_if<double>(&value)) {
    parameter.kind = ASSAY_REAL;
    parameter.real = *real;
  } else {
    parameter.kind = ASSAY_TEXT;
    parameter.text = std::get<std::string>(value).c_str();
  }
  return parameter;
}

namespace {

std::int64_t workspace_bytes_from(const CallResult& answer, std::int64_t bytes, std::string& fault) {
  if (answer.status == ASSAY_OK && bytes >= 0 && bytes <= CaseMemory::kMaxBytes) return bytes;
  fault = answer.status != ASSAY_OK ? fmt::format("workspace_bytes() returned '{}': {}", name_of(answer.status), answer.error)
                                    : fmt::format("workspace_bytes() asks for {} bytes: expected 0 to 2^48", bytes);
  return 0;
}

}  // namespace

std::int64_t workspace_bytes_of(Backend& backend, const assay_call& call, std::string& fault) {
  std::int64_t bytes = 0;
  const assay_status sized = backend.table().workspace_bytes(backend.context(), &call, &bytes);
  return workspace_bytes_from({true, sized, sized == ASSAY_OK ? "" : backend.last_error()}, bytes, fault);
}

// FNV-1a.
std::uint64_t variety_of(const std::string& op, const std::string& name) {
  std::uint64_t number = 0xcbf2'9ce4'8422'2325;
  for (const char each : op + name) number = (number ^ static_cast<std::uint8_t>(each)) * 0x0000'0100'0000'01b3;
  return number ^ number >> 29;
}

CallRunner::CallRunner(Backend& backend, const Case& problem, const std::vector<OutputSpec>& outputs, std::int64_t algorithm,
                       std::int64_t timeout_ms, const std::map<std::string, Attribute>* attributes, CaseMemory::Gaps gaps)
    : backend_(backend),
      problem_(problem),
      timeout_ms_(timeout_ms),
      variety_(variety_of(problem.op, problem.name)),
      streams_(backend),
      memory_(backend, variety_, gaps) {
  for (const auto& [name, value] : attributes != nullptr ? *attributes : problem.attributes)
    parameters_.push_back(parameter_of(name, value));
  for (const OutputSpec& spec : outputs) output_names_.push_back(spec.name);
  for (const auto& [name, tensor] : problem.in) {
    inputs_.push_back(tensor_of(name, tensor.type, tensor.shape));
    input_parts_.push_back(memory_.add("in/" + name, CaseMemory::Role::input, inputs_.back().bytes));
    memory_.set(input_parts_.back(), tensor.bytes.data());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs_.push_back(tensor_of(output_names_[i], outputs[i].type, outputs[i].shape));
    output_parts_.push_back(memory_.add(output_names_[i], CaseMemory::Role::output, outputs_.back().bytes));
  }
  streams_.push_back(backend_.create_stream());
  memory_.place();
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].data = memory_.data(input_parts_[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = memory_.data(output_parts_[i]);
  call_ = call_of_this_build();
  call_.op = problem.op.c_str();
  call_.parameters = parameters_.data();
  call_.parameter_count = static_cast<std::int32_t>(parameters_.size());
  call_.inputs = inputs_.data();
  call_.input_count = static_cast<std::int32_t>(inputs_.size());
  call_.outputs = outputs_.data();
  call_.output_count = static_cast<std::int32_t>(outputs_.size());
  call_.algorithm = algorithm;
  constexpr std::uint8_t kFirst = 0xff;
  write(stream(false), kFirst);
  ask();
  const std::int64_t workspace = workspace_bytes_from(questions_.workspace_bytes, questions_.bytes, workspace_fault_);
  if (workspace > 0) {
    const CaseMemory::Part part = memory_.add("workspace", CaseMemory::Role::workspace, workspace);
    memory_.place();
    call_.workspace = memory_.data(part);
    call_.workspace_bytes = workspace;
    memory_.write_placed(stream(false), workspace_poison(kFirst));
  }
  if (needs_workspace(questions_)) {
    questions_.sized = true;
    ask();
  }
}

// Asks the questions, and checks that they have written nothing.
void CallRunner::ask() {
  CallResult written, fetched;
  CallSequence calls(backend_);
  calls.synchronize(stream(false), timeout_ms_, written);
  calls.ask(call_, questions_);
  memory_.fetch(calls, stream(false), fetched);
  calls.finish();
  backend_.check(written, "wait for the copies of the inputs");
  if (fetched.made) seen_ = memory_.look(stream(false), fetched, nullptr);
}

CallRunner::Streams::~Streams() {
  if (backend.is_given_up()) return;
  for (const auto& each : *this) backend.table().stream_destroy(backend.context(), *each);
}

void CallRunner::Streams::drain() {
  for (const auto& each : *this) backend.drain(*each);
}

assay_stream* CallRunner::stream(bool other) {
  const std::size_t index = other ? other_stream_ : 0;
  while (streams_.size() <= index) streams_.push_back(backend_.create_stream());
  assay_stream*& found = *streams_[index];
  if (found == nullptr) backend_.settle();
  return found;
}

void CallRunner::synchronize(assay_stream* stream, const std::string& doing) {
  backend_.check(backend_.table().synchronize(backend_.context(), stream, timeout_ms_), doing);
}

// Where tensors hold the second poison the workspace may hold zeros: flags and counters there often mean "not yet".
std::uint8_t CallRunner::workspace_poison(std::uint8_t poison) const {
  return poison == 0xa5 && variety_ / 3 % 4 == 0 ? 0x00 : poison;
}

void CallRunner::write(assay_stream* stream, std::uint8_t poison, std::int64_t piece) {
  memory_.write(stream, poison, workspace_poison(poison), piece);
  prepared_ = poison;
}

std::vector<std::string> CallRunner::written_by_questions(bool asked_more) {
  std::vector<std::string> damage = seen_ ? *seen_ : memory_.look(stream(false), nullptr);
  if (seen_ && asked_more) {
    for (std::string& line : memory_.look(stream(false), nullptr)) damage.push_back(std::move(line));
  }
  seen_.reset();
  if (damage.empty()) return damage;
  const assay_backend& table = backend_.table();
  assay_numerics numerics = Questions().stated;
  std::int64_t number = 0;
  std::int32_t count = 0;
  // clang-format off
  const std::vector<NamedQuestion> questions = {
      {"workspace_bytes()", [&] { table.workspace_bytes(backend_.context(), &call_, &number); }},
      {"supports()", [&] { table.supports(backend_.context(), &call_); }},
      {"numerics()", [&] { table.numerics(backend_.context(), &call_, &numerics); }},
      {"list_algorithms()", [&] { if (table.list_algorithms != nullptr) table.list_algorithms(backend_.context(), &call_, nullptr, 0, &count); }},
  };
  // clang-format on
  const auto prepare = [&](std::uint8_t poison) {
    write(stream(false), poison);
    synchronize(stream(false), CaseMemory::kPoisoned);
  };
  damage = blamed(std::move(damage), memory_, stream(false), prepare, questions);
  prepared_.reset();
  return damage;
}

Attempt CallRunner::attempt(std::uint8_t poison, Outputs memory) { return make(poison, Mode{}, std::move(memory)); }

Attempt CallRunner::attempt(const Case& changed, std::uint8_t poison, const Mode& mode, Outputs memory) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& tensor = changed.in.at(inputs_[i].name);
    const Tensor& first = problem_.in.at(inputs_[i].name);
    require(tensor.type == first.type && tensor.shape == first.shape, "replayed input " + std::string(inputs_[i].name),
            "changed in type or shape", "only its contents");
    memory_.set(input_parts_[i], tensor.bytes.data());
  }
  prepared_.reset();
  return make(poison, mode, std::move(memory));
}

std::string CallRunner::text_of(const Mode& mode) {
  std::string text;
  if (mode.graph) text = mode.elsewhere && !mode.late ? "launched on another stream than captured" : "launched";
  if (!mode.late) return text;
  return (text.empty() ? "" : text + ", ") + std::string("inputs, poison and call behind other work on the stream, ") +
         (mode.elsewhere ? "waited for there and read on another stream" : "read there without a wait before");
}

Attempt CallRunner::make(std::uint8_t poison, const Mode& mode, Outputs memory) {
  if (mode.elsewhere) other_stream_ = 3 - other_stream_;
  assay_stream* const on = stream(mode.graph && mode.elsewhere);
  assay_stream* const reader = mode.late && mode.elsewhere ? stream(!mode.graph) : on;
  CallResult blanked, called, waited, fetched;
  std::optional<LateStream> late;
  CallSequence calls(backend_);
  const auto between = [&] {
    if (mode.between) calls.enqueue([&] { mode.between(on); });
  };
  between();
  if (mode.late) {
    // A call that overtakes the stream reads this, or its output is overwritten by it.
    const auto other = static_cast<std::uint8_t>(~poison);
    memory_.blank(on, other);
    calls.synchronize(on, timeout_ms_, blanked);
    if (!LateStream::is_idle_on(backend_)) {
      calls.finish();
      backend_.check(blanked, CaseMemory::kPoisoned);
      late.emplace(backend_, on);
    }
    calls.enqueue([&] {
      memory_.blank(on, other);
      write(on, poison, kLatePiece);
    });
  } else if (prepared_ != poison) {
    write(on, poison);
  }
  prepared_.reset();
  Attempt result;
  try {
    between();
    if (mode.graph) {
      calls.launch(graphs_.empty() ? nullptr : graphs_.back(), on, called);
    } else {
      calls.execute(on, call_, called);
    }
    between();
    const bool waits = !mode.late || mode.elsewhere;
    if (waits) calls.synchronize(on, timeout_ms_, waited);
    memory_.fetch(calls, reader, fetched);
    calls.finish();
    if (blanked.made) backend_.check(blanked, CaseMemory::kPoisoned);
    if (has_ended(called, waits ? &waited : nullptr, result)) {
      read(reader, fetched, result, std::move(memory));
    } else if (can_be_read(waited)) {
      read_after_failure(result, [&] { read(reader, {}, result, std::move(memory)); });
    }
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    if (!mode.late) throw;
    result.status = error.status();
    result.error = error.what();
  }
  return result;
}

// Fills in the result of the call. False where nothing more can be checked: the call did not finish.
bool CallRunner::has_ended(const CallResult& called, const CallResult* waited, Attempt& result) {
  result.status = called.status;
  result.error = called.error;
  if (waited == nullptr) return called.status != ASSAY_DEVICE_LOST;
  if (!waited->made) return false;
  if (waited->status == ASSAY_OK) return true;
  if (waited->status == ASSAY_TIMEOUT) backend_.give_up();
  result.status = waited->status;
  result.error = waited->status == ASSAY_TIMEOUT ? fmt::format("not finished after {} ms", timeout_ms_) : waited->error;
  return false;
}

// A wait that failed without losing the device says nothing about memory: memory is still checked.
bool CallRunner::can_be_read(const CallResult& waited) {
  return waited.made && waited.status != ASSAY_OK && waited.status != ASSAY_TIMEOUT && waited.status != ASSAY_DEVICE_LOST;
}

template <class Read>
void CallRunner::read_after_failure(Attempt& result, Read read) {
  try {
    read();
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    result.outputs.clear();
    result.damage.push_back(std::string("it cannot be read after the wait that failed: ") + error.what());
  }
}

void CallRunner::read(assay_stream* on, const CallResult& fetched, Attempt& result, Outputs memory) {
  result.outputs = std::move(memory);
  CaseMemory::Outputs outputs;
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs[output_parts_[i]] = &result.outputs[output_names_[i]];
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].bytes == 0) result.outputs[output_names_[i]].clear();
  }
  result.damage = memory_.look(on, fetched, &outputs);
}

Attempt CallRunner::refused(const assay_call& call, std::uint8_t poison) {
  assay_stream* const on = stream(false);
  if (prepared_ != poison) write(on, poison);
  prepared_.reset();
  Attempt result;
  CallResult called, waited, fetched;
  CallSequence calls(backend_);
  calls.execute(on, call, called);
  calls.synchronize(on, timeout_ms_, waited);
  memory_.fetch(calls, on, fetched);
  calls.finish();
  if (has_ended(called, &waited, result)) {
    result.damage = memory_.look(on, fetched, nullptr);
  } else if (can_be_read(waited)) {
    read_after_failure(result, [&] { result.damage = memory_.look(on, nullptr); });
  } else {
    return result;
  }
  if (result.damage.empty()) prepared_ = poison;
  return result;
}

std::vector<std::string> CallRunner::capture(const std::function<void(assay_stream*)>& first) {
  const assay_backend& table = backend_.table();
  assay_stream* const on = stream(false);
  write(on, 0xa5);
  synchronize(on, CaseMemory::kPoisoned);
  backend_.check(table.capture_begin(backend_.context(), on), "begin a capture");
  if (first) first(on);
  const assay_status called = table.execute(backend_.context(), on, &call_);
  const std::string why = called == ASSAY_OK ? "" : backend_.last_error();
  assay_graph* graph = nullptr;
  const assay_status ended = table.capture_end(backend_.context(), on, &graph);
  if (graph != nullptr) graphs_.push_back(graph);
  if (called != ASSAY_OK)
    throw BackendError(called, "under capture the call returned '" + std::string(name_of(called)) + "': " + why);
  backend_.check(ended, "end a capture");
  std::vector<std::string> damage = memory_.look(on, nullptr);
  if (!damage.empty()) prepared_.reset();
  return damage;
}

}  // namespace assay::conformance
