// A call of the interface as a request. All built-in backends, and the doors to functions of Python, read calls through
// this, so that what a call shows by itself (backend.h, part 2) is checked in one place.

#include <limits>

#include "conformance/backends/call_layout.h"
#include "conformance/ops/request.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int32_t kMaxItems = 1024;  // of one array of a call

void check_array(const void* items, std::int32_t count, const std::string& name) {
  require(count >= 0 && count <= kMaxItems, name + "_count", count, "0 to " + std::to_string(kMaxItems));
  require(count == 0 || items != nullptr, name + "s", "null", "an array of " + std::to_string(count));
}

// Nothing of the call has been read before.
void check_structure(const assay_call& call) {
  constexpr std::size_t kFirstCall = offsetof(assay_call, parameter_size);
  require(call.struct_size >= kFirstCall, "call.struct_size", call.struct_size, "at least " + std::to_string(kFirstCall));
  require(call.op != nullptr, "op", "null", "the name of an op");
  check_array(call.parameters, call.parameter_count, "parameter");
  check_array(call.inputs, call.input_count, "input");
  check_array(call.outputs, call.output_count, "output");
  require(parameter_size_of(call) >= kFirstSizes.parameter, "call.parameter_size", call.parameter_size,
          "at least " + std::to_string(kFirstSizes.parameter) + ", or 0");
  require(tensor_size_of(call) >= kFirstSizes.tensor, "call.tensor_size", call.tensor_size,
          "at least " + std::to_string(kFirstSizes.tensor) + ", or 0");
  require(call.workspace_bytes >= 0, "workspace_bytes", call.workspace_bytes, "0 or more");
  require(call.workspace != nullptr || call.workspace_bytes == 0, "workspace", "null",
          std::to_string(call.workspace_bytes) + " bytes of memory");
}

Attribute value_of(const assay_parameter& parameter) {
  switch (parameter.kind) {
    case ASSAY_INTEGER: return parameter.integer;
    case ASSAY_REAL: return parameter.real;
    case ASSAY_TEXT:
      require(parameter.text != nullptr, "attribute " + std::string(parameter.name), "null", "text");
      return std::string(parameter.text);
  }
  throw InvalidArgument("attribute " + std::string(parameter.name),
                        "of the kind " + std::to_string(static_cast<int>(parameter.kind)), "an assay_parameter_kind, 0 to 2");
}

std::int64_t bytes_of_element(Format type) { return type == Format::e2m1 ? 1 : bits_of(type) / 8; }

OutputView view_of(const assay_tensor& tensor, const std::string& label) {
  require(tensor.rank >= 0 && tensor.rank <= 4, label + ".rank", tensor.rank, "0 to 4");
  require(static_cast<std::uint32_t>(tensor.dtype) <= ASSAY_I64, label + ".dtype", static_cast<int>(tensor.dtype),
          "an assay_dtype of elements, 0 to 10");
  OutputView view{static_cast<Format>(tensor.dtype), {tensor.shape, tensor.shape + tensor.rank}, tensor.data, tensor.bytes};
  std::int64_t bytes = bytes_of_element(view.type);
  bool fits = true, has_elements = true;
  for (const std::int64_t extent : view.shape) {
    require(extent >= 0, label + ".shape", describe(view), "extents of 0 or more");
    has_elements = has_elements && extent > 0;
  }
  for (const std::int64_t extent : view.shape) fits = fits && !(has_elements && __builtin_mul_overflow(bytes, extent, &bytes));
  require(fits, label + ".shape", describe(view), "bytes that an int64 counts");
  if (!has_elements) bytes = 0;
  require(tensor.bytes == bytes, label + ".bytes", tensor.bytes, std::to_string(bytes) + ", which " + describe(view) + " takes");
  require(tensor.data != nullptr || bytes == 0, label + ".data", "null", "memory for " + describe(view));
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto size = static_cast<std::uintptr_t>(bytes_of_element(view.type)), past = address % size;
  require(past == 0 || bytes == 0, label + ".data", std::to_string(past) + " past a multiple of " + std::to_string(size),
          "a multiple of the " + std::to_string(size) + " bytes of its elements");
  require(static_cast<std::uintptr_t>(bytes) <= std::numeric_limits<std::uintptr_t>::max() - address, label + ".data",
          "an address near the last one", "room for " + std::to_string(bytes) + " bytes behind it");
  return view;
}

// Memory of a call, and whether the call writes to it.
struct Memory {
  std::string label;
  std::uintptr_t begin, end;
  bool is_written;
};

Memory memory_of(std::string label, const void* data, std::int64_t bytes, bool is_written) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {std::move(label), begin, begin + static_cast<std::uintptr_t>(bytes), is_written};
}

// Errors (InvalidArgument): memory that is written and shares a byte with other memory of the call.
void check_overlap(const std::vector<Memory>& all) {
  for (const Memory& written : all) {
    if (!written.is_written) continue;
    for (const Memory& other : all) {
      const std::uintptr_t begin = std::max(written.begin, other.begin), end = std::min(written.end, other.end);
      if (&other == &written || begin >= end) continue;
      throw InvalidArgument(written.label,
                            "in memory that it shares with " + other.label + ", " + std::to_string(end - begin) + " bytes of it",
                            "memory of its own");
    }
  }
}

}  // namespace

Request Request::of(const assay_call& call) {
  check_structure(call);
  Request request(call.op);
  for (const assay_parameter& parameter : parameter_items(call)) {
    require(parameter.name != nullptr, "the name of a parameter", "null", "a name");
    const bool is_first = request.attributes.emplace(parameter.name, value_of(parameter)).second;
    require(is_first, "attribute " + std::string(parameter.name), "given twice", "one of that name");
  }
  std::vector<Memory> memory;
  for (const assay_tensor& tensor : input_items(call)) {
    require(tensor.name != nullptr, "the name of an input", "null", "a name");
    const std::string label = "in/" + std::string(tensor.name);
    const OutputView view = view_of(tensor, label);
    const bool is_first = request.in.emplace(tensor.name, TensorView{view.type, view.shape, view.data, view.bytes}).second;
    require(is_first, label, "given twice", "one of that name");
    memory.push_back(memory_of(label, view.data, view.bytes, false));
  }
  for (const assay_tensor& tensor : output_items(call)) {
    require(tensor.name != nullptr, "the name of an output", "null", "a name");
    const std::string label = "out/" + std::string(tensor.name);
    const OutputView view = view_of(tensor, label);
    require(request.out.emplace(tensor.name, view).second, label, "given twice", "one of that name");
    memory.push_back(memory_of(label, view.data, view.bytes, true));
  }
  memory.push_back(memory_of("workspace", call.workspace, call.workspace_bytes, true));
  check_overlap(memory);
  return request;
}

}  // namespace assay::conformance
