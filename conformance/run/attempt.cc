#include "conformance/run/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/run/guarded_buffer.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

assay_tensor tensor_of(const char* name, Format type, const std::vector<std::int64_t>& shape) {
  require(shape.size() <= 4, name, static_cast<std::int64_t>(shape.size()), "a tensor of rank 4 at most");
  assay_tensor tensor{};
  tensor.name = name;
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

class Stream {
 public:
  explicit Stream(Backend& backend) : backend_(backend) {
    backend_.check(backend_.table().stream_create(backend_.context(), &stream_), "create a stream");
  }
  ~Stream() { backend_.table().stream_destroy(backend_.context(), stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  assay_stream* get() const { return stream_; }

 private:
  Backend& backend_;
  assay_stream* stream_ = nullptr;
};

}  // namespace

Call::Call(const golden::Case& problem, const std::vector<OutputSpec>& outputs_wanted) {
  for (const auto& [name, value] : problem.attributes) {
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
    parameters_.push_back(parameter);
  }
  for (const auto& [name, tensor] : problem.in) inputs.push_back(tensor_of(name.c_str(), tensor.type, tensor.shape));
  for (const OutputSpec& spec : outputs_wanted) outputs.push_back(tensor_of(spec.name.c_str(), spec.type, spec.shape));
  call.struct_size = sizeof call;
  call.op = problem.op.c_str();
  call.parameters = parameters_.data();
  call.parameter_count = static_cast<std::int32_t>(parameters_.size());
  call.inputs = inputs.data();
  call.input_count = static_cast<std::int32_t>(inputs.size());
  call.outputs = outputs.data();
  call.output_count = static_cast<std::int32_t>(outputs.size());
  call.algorithm = -1;
}

Attempt attempt(Backend& backend, const golden::Case& problem, const std::vector<OutputSpec>& specs, const AttemptOptions& options) {
  const assay_backend& table = backend.table();
  Stream stream(backend);
  Call made(problem, specs);
  made.call.algorithm = options.algorithm;

  std::vector<GuardedBuffer> buffers;
  buffers.reserve(made.inputs.size() + made.outputs.size() + 1);
  for (assay_tensor& tensor : made.inputs) {
    GuardedBuffer& buffer = buffers.emplace_back(backend, stream.get(), "in/" + std::string(tensor.name), tensor.bytes);
    buffer.write(problem.in.at(tensor.name).bytes.data());
    tensor.data = buffer.data();
  }
  for (assay_tensor& tensor : made.outputs) {
    GuardedBuffer& buffer = buffers.emplace_back(backend, stream.get(), tensor.name, tensor.bytes);
    buffer.fill(options.poison);
    tensor.data = buffer.data();
  }
  Attempt result;
  std::int64_t workspace = 0;
  const assay_status sized = table.workspace_bytes(backend.context(), &made.call, &workspace);
  if (sized == ASSAY_OK && workspace > 0) {
    GuardedBuffer& buffer = buffers.emplace_back(backend, stream.get(), "workspace", workspace);
    buffer.fill(options.poison);
    made.call.workspace = buffer.data();
    made.call.workspace_bytes = workspace;
  }
  backend.check(table.synchronize(backend.context(), stream.get(), options.timeout_ms), "wait for the copies of the inputs");

  result.status = table.execute(backend.context(), stream.get(), &made.call);
  if (result.status != ASSAY_OK) result.error = backend.last_error();
  const assay_status waited = table.synchronize(backend.context(), stream.get(), options.timeout_ms);
  if (waited != ASSAY_OK) {
    result.status = waited;
    result.error = waited == ASSAY_TIMEOUT ? fmt::format("not finished after {} ms", options.timeout_ms) : backend.last_error();
    return result;
  }
  for (const GuardedBuffer& buffer : buffers) {
    if (const std::string text = buffer.damage(); !text.empty()) result.damage.push_back(text);
  }
  for (std::size_t i = 0; i < made.inputs.size(); ++i) {
    const golden::Tensor& before = problem.in.at(made.inputs[i].name);
    const std::vector<std::byte> after = buffers[i].read();
    const auto differs = std::mismatch(after.begin(), after.end(), before.bytes.begin());
    if (differs.first != after.end()) {
      result.damage.push_back(fmt::format("{}: the input was changed, first at byte {}: 0x{:02x} became 0x{:02x}", buffers[i].label(),
                                          differs.first - after.begin(), static_cast<unsigned>(*differs.second),
                                          static_cast<unsigned>(*differs.first)));
    }
  }
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    result.outputs[made.outputs[i].name] = buffers[made.inputs.size() + i].read();
  }
  return result;
}

}  // namespace assay::conformance
