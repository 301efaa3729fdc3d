#include "conformance/selftest/catalogued/fault_parts.h"

namespace assay::conformance {

CallFault& add_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when, Perform perform) {
  CallFault fault{"fault." + name, "catalogued", std::move(says), false, when, {}};
  fault.perform = [when, perform](Request& request) { when(request) ? perform(request) : answer(request, Layer::fast); };
  return to.emplace_back(std::move(fault));
}

When is_op(std::string op) {
  return [op = std::move(op)](const Request& request) { return request.op() == op; };
}
When is_op_of(std::string op, std::string attribute, std::string value) {
  return [=](const Request& request) { return request.op() == op && request.text_or(attribute, "") == value; };
}
When has_input(std::string name) {
  return [name = std::move(name)](const Request& request) {
    const auto found = request.in.find(name);
    return found != request.in.end() && found->second.bytes > 0;
  };
}
When has_output(std::string name) {
  return [name = std::move(name)](const Request& request) {
    const auto found = request.out.find(name);
    return found != request.out.end() && found->second.bytes > 0;
  };
}
When both(When a, When b) {
  return [a = std::move(a), b = std::move(b)](const Request& request) { return a(request) && b(request); };
}
When either(When a, When b) {
  return [a = std::move(a), b = std::move(b)](const Request& request) { return a(request) || b(request); };
}

bool has_product(const Request& request) {
  const std::string output = product_output(request.op());
  return !output.empty() && request.out.count(output) != 0;
}

std::string layout_of(const Request& request) {
  if (request.op() == "linear_dgrad") return "NN";
  if (request.op() == "linear_wgrad") return "NT";
  return request.text_or("layout", "TN");
}

std::vector<std::byte>& ChangedCall::input(const std::string& name) {
  TensorView& view = request.in.at(name);
  std::vector<std::byte>& bytes = owned_.emplace_back(bytes_of(view));
  if (!bytes.empty()) view.data = bytes.data();
  return bytes;
}

std::vector<std::byte>& ChangedCall::output(const std::string& name) {
  OutputView& view = request.out.at(name);
  std::vector<std::byte>& bytes = owned_.emplace_back(bytes_of(view));
  if (!bytes.empty()) view.data = bytes.data();
  return bytes;
}

void ChangedCall::replace(const std::string& name, std::vector<std::byte> bytes) {
  std::vector<std::byte>& kept = owned_.emplace_back(std::move(bytes));
  if (!kept.empty()) request.in.at(name).data = kept.data();
}

void ChangedCall::carry_out(const Request& given) { answer(is_answerable(request) ? request : given, Layer::fast); }

std::map<std::string, std::vector<std::byte>>& NewCall::carry_out() {
  for (const OutputSpec& spec : outputs_of(request)) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : spec.shape) elements *= extent;
    std::vector<std::byte>& bytes = outputs_[spec.name];
    bytes.resize(static_cast<std::size_t>(elements) * element_bytes(spec.type));
    request.out[spec.name] = {spec.type, spec.shape, bytes.empty() ? nullptr : bytes.data(),
                              static_cast<std::int64_t>(bytes.size())};
  }
  answer(request, Layer::fast);
  return outputs_;
}

const void* address_of(const Request& request) {
  for (const auto& [name, view] : request.out) {
    if (view.data != nullptr) return view.data;
  }
  return nullptr;
}

int Turns::of(const Request& request) { return ++turns_.now()[address_of(request)]; }

std::vector<std::byte> bytes_of(const OutputView& view) {
  const auto* from = static_cast<const std::byte*>(view.data);
  return {from, from + view.bytes};
}
std::vector<std::byte> bytes_of(const TensorView& view) {
  const auto* from = static_cast<const std::byte*>(view.data);
  return {from, from + view.bytes};
}

}  // namespace assay::conformance
