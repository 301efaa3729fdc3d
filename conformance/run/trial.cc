#include "conformance/run/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  if (sized == ASSAY_OK && bytes >= 0) return bytes;
  fault = sized != ASSAY_OK ? fmt::format("workspace_bytes() returned '{}': {}", name_of(sized), backend.last_error())
                            : fmt::format("workspace_bytes() asks for {} bytes: expected 0 or more", bytes);
  return 0;
}

Trial::Trial(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& outputs, std::int64_t algorithm,
             std::int64_t timeout_ms, const std::map<std::string, golden::Attribute>* attributes)
    : backend_(backend), problem_(problem), timeout_ms_(timeout_ms), owned_stream_(backend) {
  for (const auto& [name, value] : attributes != nullptr ? *attributes : problem.attributes) parameters_.push_back(parameter_of(name, value));
  for (const OutputSpec& spec : outputs) output_names_.push_back(spec.name);
  for (const auto& [name, tensor] : problem.in) {
    inputs_.push_back(tensor_of(name, tensor.type, tensor.shape));
    GuardedBuffer& buffer = input_buffers_.emplace_back(backend_, stream_, "in/" + name, inputs_.back().bytes);
    buffer.write(tensor.bytes.data());
    inputs_.back().data = buffer.data();
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs_.push_back(tensor_of(output_names_[i], outputs[i].type, outputs[i].shape));
    outputs_.back().data = output_buffers_.emplace_back(backend_, stream_, output_names_[i], outputs_.back().bytes).data();
  }
  call_.struct_size = sizeof call_;
  call_.op = problem.op.c_str();
  call_.parameters = parameters_.data();
  call_.parameter_count = static_cast<std::int32_t>(parameters_.size());
  call_.inputs = inputs_.data();
  call_.input_count = static_cast<std::int32_t>(inputs_.size());
  call_.outputs = outputs_.data();
  call_.output_count = static_cast<std::int32_t>(outputs_.size());
  call_.algorithm = algorithm;
  const std::int64_t workspace = workspace_bytes_of(backend_, call_, workspace_fault_);
  if (workspace > 0) {
    call_.workspace = workspace_.emplace_back(backend_, stream_, "workspace", workspace).data();
    call_.workspace_bytes = workspace;
  }
  backend_.check(backend_.table().synchronize(backend_.context(), stream_, timeout_ms_), "wait for the copies of the inputs");
}

Trial::Stream::Stream(Backend& of) : backend(of) {
  backend.check(backend.table().stream_create(backend.context(), &handle), "create a stream");
}

Trial::Stream::~Stream() {
  if (!backend.is_given_up()) backend.table().stream_destroy(backend.context(), handle);
}

Trial::~Trial() {
  if (graph_ != nullptr && !backend_.is_given_up()) backend_.table().graph_destroy(backend_.context(), graph_);
}

void Trial::prepare(std::uint8_t poison) {
  for (GuardedBuffer& buffer : output_buffers_) buffer.fill(poison);
  for (GuardedBuffer& buffer : workspace_) buffer.fill(poison);
  backend_.check(backend_.table().synchronize(backend_.context(), stream_, timeout_ms_), "wait for the poison");
}

Attempt Trial::attempt(std::uint8_t poison, std::map<std::string, std::vector<std::byte>> memory) {
  prepare(poison);
  return collect(problem_, backend_.table().execute(backend_.context(), stream_, &call_), std::move(memory));
}

void Trial::capture() {
  const assay_backend& table = backend_.table();
  backend_.check(table.capture_begin(backend_.context(), stream_), "begin a capture");
  const assay_status called = table.execute(backend_.context(), stream_, &call_);
  const std::string why = called == ASSAY_OK ? "" : backend_.last_error();
  const assay_status ended = table.capture_end(backend_.context(), stream_, &graph_);
  if (called != ASSAY_OK) throw BackendError(called, "under capture the call returned '" + std::string(name_of(called)) + "': " + why);
  backend_.check(ended, "end a capture");
}

Attempt Trial::replay(const golden::Case& changed, std::uint8_t poison, std::map<std::string, std::vector<std::byte>> memory) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const golden::Tensor& before = problem_.in.at(inputs_[i].name);
    const auto found = changed.in.find(inputs_[i].name);
    const bool same = found != changed.in.end() && found->second.type == before.type && found->second.shape == before.shape;
    require(same, "replayed input " + std::string(inputs_[i].name), "of another type or shape", "what was captured, with other contents");
    input_buffers_[i].write(found->second.bytes.data());
  }
  prepare(poison);
  return collect(changed, backend_.table().graph_launch(backend_.context(), graph_, stream_), std::move(memory));
}

// Waits for the call, then looks at all memory. `inputs` is what the inputs must still be.
Attempt Trial::collect(const golden::Case& inputs, assay_status launched, std::map<std::string, std::vector<std::byte>> memory) {
  Attempt result;
  result.status = launched;
  if (result.status != ASSAY_OK) result.error = backend_.last_error();
  const assay_status waited = backend_.table().synchronize(backend_.context(), stream_, timeout_ms_);
  if (waited != ASSAY_OK) {
    if (waited == ASSAY_TIMEOUT) backend_.give_up();
    result.status = waited;
    result.error = waited == ASSAY_TIMEOUT ? fmt::format("not finished after {} ms", timeout_ms_) : backend_.last_error();
    return result;
  }
  for (const std::vector<GuardedBuffer>* buffers : {&input_buffers_, &output_buffers_, &workspace_}) {
    for (const GuardedBuffer& buffer : *buffers) {
      if (const std::string text = buffer.damage(); !text.empty()) result.damage.push_back(text);
    }
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<std::byte>& before = inputs.in.at(inputs_[i].name).bytes;
    const auto change = input_buffers_[i].change_from(before.data());
    if (!change) continue;
    result.damage.push_back(fmt::format("{}: the input was changed, first at byte {}: 0x{:02x} became 0x{:02x}", input_buffers_[i].label(),
                                        change->at, static_cast<unsigned>(before[static_cast<std::size_t>(change->at)]),
                                        static_cast<unsigned>(change->found)));
    input_buffers_[i].write(before.data());  // the next attempt starts from the inputs as they were
  }
  result.outputs = std::move(memory);
  for (std::size_t i = 0; i < outputs_.size(); ++i) output_buffers_[i].read(result.outputs[output_names_[i]]);
  return result;
}

}  // namespace assay::conformance
