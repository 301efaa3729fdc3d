#include "conformance/ops/request.h"

#include <cmath>

#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::string shown(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return show(*integer);
  if (const auto* real = std::get_if<double>(&value)) return show(*real);
  return "'" + std::get<std::string>(value) + "'";
}

TensorView view_of(const Tensor& tensor) {
  return {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
          static_cast<std::int64_t>(tensor.bytes.size())};
}

OutputView output_view_of(Tensor& tensor) {
  return {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
          static_cast<std::int64_t>(tensor.bytes.size())};
}

template <class Address>
std::string described(const View<Address>& tensor) {
  std::string text = "[";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
  return text + "] " + std::string(name_of(tensor.type));
}

}  // namespace

template <class Address>
std::int64_t View<Address>::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    require(!__builtin_mul_overflow(count, extent, &count), "shape", extent, "a number of elements within int64");
  }
  return count;
}

template struct View<const void*>;
template struct View<void*>;

std::string describe(const TensorView& tensor) { return described(tensor); }
std::string describe(const OutputView& tensor) { return described(tensor); }

Request Request::read_only(const Case& with) {
  Request request(with.op);
  request.attributes = with.attributes;
  for (const auto& [name, tensor] : with.in) request.in.emplace(name, view_of(tensor));
  for (const auto& [name, tensor] : with.out) {
    request.out.emplace(name, OutputView{tensor.type, tensor.shape, nullptr, static_cast<std::int64_t>(tensor.bytes.size())});
  }
  return request;
}

Request Request::of(Case& with) {
  Request request = read_only(with);
  for (auto& [name, tensor] : with.out) request.out.at(name) = output_view_of(tensor);
  return request;
}

const Attribute* Request::find(const std::string& name) const {
  known_.insert(name);
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

std::int64_t Request::integer(const std::string& name) const {
  const Attribute* value = find(name);
  if (value == nullptr) throw InvalidArgument("attribute " + name, "absent", "an integer (op " + op_ + " needs it)");
  const auto* integer = std::get_if<std::int64_t>(value);
  if (integer == nullptr) throw InvalidArgument("attribute " + name, shown(*value), "an integer");
  return *integer;
}

std::int64_t Request::integer_or(const std::string& name, std::int64_t absent) const {
  return find(name) == nullptr ? absent : integer(name);
}

bool Request::flag(const std::string& name, bool absent) const {
  const std::int64_t value = integer_or(name, absent ? 1 : 0);
  require(value == 0 || value == 1, "attribute " + name, value, "0 or 1");
  return value == 1;
}

double Request::real_or(const std::string& name, double absent) const {
  const Attribute* value = find(name);
  if (value == nullptr) return absent;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  throw InvalidArgument("attribute " + name, shown(*value), "a number");
}

std::string Request::text(const std::string& name) const {
  const Attribute* value = find(name);
  if (value == nullptr) throw InvalidArgument("attribute " + name, "absent", "text (op " + op_ + " needs it)");
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) throw InvalidArgument("attribute " + name, shown(*value), "text");
  return *text;
}

std::string Request::text_or(const std::string& name, std::string_view absent) const {
  return find(name) == nullptr ? std::string(absent) : text(name);
}

Format Request::format(const std::string& name) const {
  const std::string value = text(name);
  const auto format = format_named(value);
  if (!format) throw InvalidArgument("attribute " + name, "'" + value + "'", "the name of a format, such as bf16 or e4m3");
  return *format;
}

Format Request::format_or(const std::string& name, Format absent) const { return find(name) == nullptr ? absent : format(name); }

const TensorView* Request::find_input(const std::string& name) const {
  known_.insert(name);
  const auto found = in.find(name);
  return found == in.end() ? nullptr : &found->second;
}

const TensorView& Request::input(const std::string& name) const {
  const TensorView* tensor = find_input(name);
  if (tensor == nullptr) throw InvalidArgument("in/" + name, "absent", "a tensor (op " + op_ + " needs it)");
  return *tensor;
}

const TensorView* Request::find_input(const std::string& name, Format type, std::int64_t elements) const {
  const TensorView* tensor = find_input(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->type != type) throw InvalidArgument("in/" + name, describe(*tensor), "type " + std::string(name_of(type)));
  if (elements >= 0 && tensor->elements() != elements) {
    throw InvalidArgument("in/" + name, describe(*tensor), std::to_string(elements) + " elements");
  }
  return tensor;
}

const TensorView& Request::input(const std::string& name, Format type, std::int64_t elements) const {
  input(name);
  return *find_input(name, type, elements);
}

std::vector<std::int64_t> Request::splits() const {
  const TensorView& tensor = input("splits");
  if (tensor.shape.size() != 1) throw InvalidArgument("in/splits", describe(tensor), "one extent, [G]");
  const std::int64_t count = tensor.elements();
  if (tensor.type == Format::i64) {
    const auto* values = static_cast<const std::int64_t*>(tensor.data);
    return {values, values + count};
  }
  if (tensor.type != Format::i32) throw InvalidArgument("in/splits", describe(tensor), "type i64 or i32");
  const auto* values = static_cast<const std::int32_t*>(tensor.data);
  return {values, values + count};
}

void* Request::output(const std::string& name, Format type, std::int64_t elements) const {
  const auto found = out.find(name);
  if (found == out.end()) return nullptr;
  const OutputView& tensor = found->second;
  if (tensor.type != type) throw InvalidArgument("out/" + name, describe(tensor), "type " + std::string(name_of(type)));
  if (tensor.elements() != elements) {
    throw InvalidArgument("out/" + name, describe(tensor), std::to_string(elements) + " elements");
  }
  alignas(16) static std::byte nothing;  // an output without elements still counts as requested
  return tensor.data == nullptr && elements == 0 ? &nothing : tensor.data;
}

void Request::refuse_unknown() const {
  for (const auto& [name, value] : attributes) {
    if (known_.count(name) == 0) throw NotSupported("op " + op_ + " has no attribute '" + name + "' here");
  }
  for (const auto& [name, tensor] : in) {
    if (known_.count(name) == 0) throw NotSupported("op " + op_ + " has no input '" + name + "' here");
  }
}

}  // namespace assay::conformance
