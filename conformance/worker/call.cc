#include "conformance/worker/call.h"

namespace assay::conformance::worker {
namespace {

void put_tensors(Writer& writer, const std::vector<assay_tensor>& tensors) {
  for (const assay_tensor& each : tensors) {
    writer.put_text(each.name);
    writer.put(each);
  }
}

}  // namespace

void put_call(Writer& writer, const assay_call& call) {
  writer.put(call);
  writer.put_text(call.op);
  for (const assay_parameter& each : parameter_items(call)) {
    writer.put_text(each.name);
    writer.put_text(each.text);
    writer.put(each);
  }
  put_tensors(writer, input_items(call));
  put_tensors(writer, output_items(call));
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

OwnedCall::OwnedCall(Reader& reader, const ArraySizes& sizes) {
  call_ = reader.get<assay_call>();
  call_.op = text(reader);
  std::vector<assay_parameter> parameters;
  for (std::int32_t i = 0; i < call_.parameter_count; ++i) {
    const char *name = text(reader), *value = text(reader);
    parameters.push_back(reader.get<assay_parameter>());
    parameters.back().name = name;
    parameters.back().text = value;
  }
  parameters_ = laid_out(parameters, sizes.parameter);
  inputs_ = laid_out(tensors(reader, call_.input_count), sizes.tensor);
  outputs_ = laid_out(tensors(reader, call_.output_count), sizes.tensor);
  call_.parameters = reinterpret_cast<const assay_parameter*>(parameters_.data());
  call_.inputs = reinterpret_cast<const assay_tensor*>(inputs_.data());
  call_.outputs = reinterpret_cast<const assay_tensor*>(outputs_.data());
  call_.parameter_size = sizes.parameter;
  call_.tensor_size = sizes.tensor;
}

}  // namespace assay::conformance::worker
