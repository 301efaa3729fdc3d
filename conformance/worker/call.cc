#include "conformance/worker/call.h"

namespace assay::conformance::worker {
namespace {

void put_tensors(Writer& writer, const assay_tensor* tensors, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) {
    writer.put_text(tensors[i].name);
    writer.put(tensors[i]);
  }
}

}  // namespace

void put_call(Writer& writer, const assay_call& call) {
  writer.put(call);
  writer.put_text(call.op);
  for (std::int32_t i = 0; i < call.parameter_count; ++i) {
    writer.put_text(call.parameters[i].name);
    writer.put_text(call.parameters[i].text);
    writer.put(call.parameters[i]);
  }
  put_tensors(writer, call.inputs, call.input_count);
  put_tensors(writer, call.outputs, call.output_count);
}

const char* OwnedCall::text(Reader& reader) {
  std::string& kept = texts_.emplace_back();
  return reader.get_text(kept) ? kept.c_str() : nullptr;
}

std::vector<assay_tensor> OwnedCall::tensors(Reader& reader, std::int32_t count) {
  std::vector<assay_tensor> all;
  for (std::int32_t i = 0; i < count; ++i) {
    const char* name = text(reader);
    all.push_back(reader.get<assay_tensor>());
    all.back().name = name;
  }
  return all;
}

OwnedCall::OwnedCall(Reader& reader) {
  call_ = reader.get<assay_call>();
  call_.op = text(reader);
  for (std::int32_t i = 0; i < call_.parameter_count; ++i) {
    const char *name = text(reader), *value = text(reader);
    parameters_.push_back(reader.get<assay_parameter>());
    parameters_.back().name = name;
    parameters_.back().text = value;
  }
  inputs_ = tensors(reader, call_.input_count);
  outputs_ = tensors(reader, call_.output_count);
  call_.parameters = parameters_.data();
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
}

}  // namespace assay::conformance::worker
