#include "conformance/run/trial.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "conformance/run/late_stream.h"
#include "reference/support/error.h"

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

assay_parameter parameter_of(const std::string& name, const golden::Attribute& value) {
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

std::int64_t workspace_bytes_of(Backend& backend, const assay_call& call, std::string& fault) {
  std::int64_t bytes = 0;
  const assay_status sized = backend.table().workspace_bytes(backend.context(), &call, &bytes);
  if (sized == ASSAY_OK && bytes >= 0 && bytes <= CaseMemory::kMostBytes) return bytes;
  fault = sized != ASSAY_OK ? fmt::format("workspace_bytes() returned '{}': {}", name_of(sized), backend.last_error())
                            : fmt::format("workspace_bytes() asks for {} bytes: expected 0 to 2^48", bytes);
  return 0;
}

// FNV-1a.
std::uint64_t variety_of(const std::string& op, const std::string& name) {
  std::uint64_t number = 0xcbf2'9ce4'8422'2325;
  for (const char each : op + name) number = (number ^ static_cast<std::uint8_t>(each)) * 0x0000'0100'0000'01b3;
  return number ^ number >> 29;
}

namespace {

constexpr std::int64_t kLatePiece = std::int64_t{32} << 10;  // copies of no more than this do not keep the caller waiting

}  // namespace

Trial::Trial(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& outputs, std::int64_t algorithm,
             std::int64_t timeout_ms, const std::map<std::string, golden::Attribute>* attributes)
    : backend_(backend), problem_(problem), timeout_ms_(timeout_ms), variety_(variety_of(problem.op, problem.name)), streams_(backend), memory_(backend, variety_) {
  for (const auto& [name, value] : attributes != nullptr ? *attributes : problem.attributes) parameters_.push_back(parameter_of(name, value));
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
  memory_.place();
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].data = memory_.data(input_parts_[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = memory_.data(output_parts_[i]);
  call_.struct_size = sizeof call_;
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
  synchronize(stream(false), "wait for the copies of the inputs");
  const std::int64_t workspace = workspace_bytes_of(backend_, call_, workspace_fault_);
  if (workspace > 0) {
    const CaseMemory::Part part = memory_.add("workspace", CaseMemory::Role::workspace, workspace);
    memory_.place();
    call_.workspace = memory_.data(part);
    call_.workspace_bytes = workspace;
    memory_.write_placed(stream(false), workspace_poison(kFirst));
  }
}

Trial::Streams::~Streams() {
  if (backend.is_given_up()) return;
  for (assay_stream* each : *this) backend.table().stream_destroy(backend.context(), each);
}

Trial::~Trial() {
  if (graph_ != nullptr && !backend_.is_given_up()) backend_.table().graph_destroy(backend_.context(), graph_);
}

assay_stream* Trial::stream(bool other) {
  while (streams_.size() < (other ? 2u : 1u)) {
    assay_stream* made = nullptr;
    backend_.check(backend_.table().stream_create(backend_.context(), &made), "create a stream");
    streams_.push_back(made);
  }
  return streams_[other ? 1 : 0];
}

void Trial::synchronize(assay_stream* stream, const std::string& doing) {
  backend_.check(backend_.table().synchronize(backend_.context(), stream, timeout_ms_), doing);
}

// What takes the second poison in tensors may hold zeros in the workspace: flags and counters there often stand for "not yet".
std::uint8_t Trial::workspace_poison(std::uint8_t poison) const { return poison == 0xa5 && variety_ / 3 % 4 == 0 ? 0x00 : poison; }

void Trial::write(assay_stream* stream, std::uint8_t poison, std::int64_t piece) {
  memory_.write(stream, poison, workspace_poison(poison), piece);
  prepared_ = poison;
}

std::vector<std::string> Trial::written_by_questions() {
  std::vector<std::string> damage = memory_.look(stream(false), nullptr);
  if (damage.empty()) return damage;
  // Which of them? Asked once more, one by one.
  const assay_backend& table = backend_.table();
  assay_numerics numerics{};
  numerics.struct_size = sizeof numerics;
  std::int64_t number = 0;
  std::int32_t count = 0;
  const std::pair<const char*, std::function<void()>> questions[] = {
      {"workspace_bytes()", [&] { table.workspace_bytes(backend_.context(), &call_, &number); }},
      {"supports()", [&] { table.supports(backend_.context(), &call_); }},
      {"numerics()", [&] { table.numerics(backend_.context(), &call_, &numerics); }},
      {"list_algorithms()", [&] { if (table.list_algorithms != nullptr) table.list_algorithms(backend_.context(), &call_, nullptr, 0, &count); }},
  };
  std::string who;
  for (const auto& [name, ask] : questions) {
    write(stream(false), 0xa5);
    synchronize(stream(false), "wait for the poison");
    ask();
    if (!memory_.look(stream(false), nullptr).empty()) who += (who.empty() ? "" : ", ") + std::string(name);
  }
  prepared_.reset();
  for (std::string& line : damage) line = (who.empty() ? "a question before the call" : who) + " changed memory: " + line;
  return damage;
}

Attempt Trial::attempt(std::uint8_t poison, Outputs memory) { return make(poison, Way{}, std::move(memory)); }

Attempt Trial::attempt(const golden::Case& changed, std::uint8_t poison, const Way& way, Outputs memory) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const golden::Tensor& tensor = changed.in.at(inputs_[i].name);
    const golden::Tensor& first = problem_.in.at(inputs_[i].name);
    require(tensor.type == first.type && tensor.shape == first.shape, "replayed input " + std::string(inputs_[i].name), "changed in type or shape",
            "only its contents");
    memory_.set(input_parts_[i], tensor.bytes.data());
  }
  prepared_.reset();
  return make(poison, way, std::move(memory));
}

std::string Trial::text_of(const Way& way) {
  std::string text;
  if (way.graph) text = way.elsewhere && !way.late ? "launched on another stream than captured" : "launched";
  if (!way.late) return text;
  return (text.empty() ? "" : text + ", ") + std::string("inputs, poison and call behind other work on the stream, ") +
         (way.elsewhere ? "waited for there and read on another stream" : "read there without a wait before");
}

Attempt Trial::make(std::uint8_t poison, const Way& way, Outputs memory) {
  const assay_backend& table = backend_.table();
  assay_stream* const on = stream(way.graph && way.elsewhere);
  std::optional<LateStream> late;
  if (way.late) {
    // What overtakes the stream finds this, or has what it wrote overwritten by it.
    const auto other = static_cast<std::uint8_t>(~poison);
    memory_.blank(on, other);
    synchronize(on, "wait for the poison");
    late.emplace(backend_, on);
    memory_.blank(on, other);
    write(on, poison, kLatePiece);
  } else if (prepared_ != poison) {
    write(on, poison);
  }
  prepared_.reset();
  Attempt result;
  result.status = way.graph ? table.graph_launch(backend_.context(), graph_, on) : table.execute(backend_.context(), on, &call_);
  if (result.status != ASSAY_OK) result.error = backend_.last_error();
  try {
    if (way.late && !way.elsewhere) {
      read(on, result, std::move(memory));
    } else if (wait(on, result)) {
      read(way.late ? stream(!way.graph) : on, result, std::move(memory));
    }
  } catch (const BackendFault&) {
    throw;
  } catch (const BackendError& error) {
    if (!way.late) throw;
    result.status = error.status();
    result.error = error.what();
  }
  return result;
}

// False where the result is known already: the call did not come to an end.
bool Trial::wait(assay_stream* on, Attempt& result) {
  const assay_status waited = backend_.table().synchronize(backend_.context(), on, timeout_ms_);
  if (waited == ASSAY_OK) return true;
  if (waited == ASSAY_TIMEOUT) backend_.give_up();
  result.status = waited;
  result.error = waited == ASSAY_TIMEOUT ? fmt::format("not finished after {} ms", timeout_ms_) : backend_.last_error();
  return false;
}

void Trial::read(assay_stream* on, Attempt& result, Outputs memory) {
  result.outputs = std::move(memory);
  CaseMemory::Outputs outputs;
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs[output_parts_[i]] = &result.outputs[output_names_[i]];
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].bytes == 0) result.outputs[output_names_[i]].clear();
  }
  result.damage = memory_.look(on, &outputs);
}

Attempt Trial::refused(const assay_call& call, std::uint8_t poison) {
  assay_stream* const on = stream(false);
  if (prepared_ != poison) write(on, poison);
  prepared_.reset();
  Attempt result;
  result.status = backend_.table().execute(backend_.context(), on, &call);
  if (result.status != ASSAY_OK) result.error = backend_.last_error();
  if (!wait(on, result)) return result;
  result.damage = memory_.look(on, nullptr);
  if (result.damage.empty()) prepared_ = poison;
  return result;
}

std::vector<std::string> Trial::capture() {
  const assay_backend& table = backend_.table();
  assay_stream* const on = stream(false);
  write(on, 0xa5);
  synchronize(on, "wait for the poison");
  backend_.check(table.capture_begin(backend_.context(), on), "begin a capture");
  const assay_status called = table.execute(backend_.context(), on, &call_);
  const std::string why = called == ASSAY_OK ? "" : backend_.last_error();
  const assay_status ended = table.capture_end(backend_.context(), on, &graph_);
  if (called != ASSAY_OK) throw BackendError(called, "under capture the call returned '" + std::string(name_of(called)) + "': " + why);
  backend_.check(ended, "end a capture");
  std::vector<std::string> damage = memory_.look(on, nullptr);
  if (!damage.empty()) prepared_.reset();
  return damage;
}

}  // namespace assay::conformance
