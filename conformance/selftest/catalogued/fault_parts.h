#pragma once
// What the catalogued faults share: contents of tensors, and what is kept from call to call.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/selftest/call_fault.h"
#include "conformance/selftest/call_parts.h"

namespace assay::conformance {

using When = std::function<bool(const Request&)>;
using Perform = std::function<void(Request&)>;

// Adds the fault "fault.NAME", which carries out the calls of which `when` holds as `perform` does, and all others right.
CallFault& add_fault(std::vector<CallFault>& to, const std::string& name, std::string says, When when, Perform perform);

When is_op(std::string op);
When is_op_of(std::string op, std::string attribute, std::string value);  // with a text attribute of this value
When has_input(std::string name);
When has_output(std::string name);
When both(When a, When b);
When either(When a, When b);
bool has_product(const Request& request);       // grouped_gemm and the steps of a layer
std::string layout_of(const Request& request);  // of the product: TN, NN, NT

// A call with changes. It must outlive its request.
class ChangedCall {
 public:
  explicit ChangedCall(const Request& request) : request(request) {}
  // The bytes of an input that the call reads from now on, which begin as they are.
  std::vector<std::byte>& input(const std::string& name);
  // The bytes that the call writes from now on in place of an output, which begin as they are.
  std::vector<std::byte>& output(const std::string& name);
  // Other contents, of the same size, for an input.
  void replace(const std::string& name, std::vector<std::byte> bytes);
  // Carries the call out as it is changed, or, where that makes no sense, as it was given.
  void carry_out(const Request& given);

  Request request;

 private:
  std::deque<std::vector<std::byte>> owned_;
};

// A new call of an op, whose inputs are views of others.
class NewCall {
 public:
  explicit NewCall(const std::string& op) : request(op) {}
  // Carries it out into memory of its own.
  std::map<std::string, std::vector<std::byte>>& carry_out();

  Request request;

 private:
  std::map<std::string, std::vector<std::byte>> outputs_;
};

// What a mutant keeps; forgotten as soon as another case begins.
template <class T>
class Kept {
 public:
  T& now() {
    if (case_ != cases_so_far()) value_ = T();
    case_ = cases_so_far();
    return value_;
  }

 private:
  T value_{};
  int case_ = -1;
};

// Of the calls of this case that write to the same memory: which this one is, from 1 on. Counts when it is called.
class Turns {
 public:
  int of(const Request& request);

 private:
  Kept<std::map<const void*, int>> turns_;
};
// The address of the first output that has one.
const void* address_of(const Request& request);

std::vector<std::byte> bytes_of(const OutputView& view);
std::vector<std::byte> bytes_of(const TensorView& view);

// Values of bytes that hold elements of T, one by one.
template <class T>
T at(const void* data, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}
template <class T>
void put(void* data, std::int64_t i, T value) {
  std::memcpy(static_cast<std::byte*>(data) + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

}  // namespace assay::conformance
