#include "conformance/judge/calls/wrong_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

#include "conformance/judge/calls/parameters.h"
#include "conformance/judge/calls/wrong_products.h"
#include "conformance/judge/calls/wrong_tensors.h"
#include "conformance/ops/schema_check.h"
#include "conformance/ops/tensor_schema.h"
#include "reference/types/error.h"
#include "reference/types/format.h"

namespace assay::conformance {

CallParts::CallParts(const assay_call& of)
    : base(of),
      parameters(of.parameters, of.parameters + of.parameter_count),
      inputs(of.inputs, of.inputs + of.input_count),
      outputs(of.outputs, of.outputs + of.output_count) {}

const assay_call& CallParts::call() {
  base.parameters = parameters.data();
  base.parameter_count = static_cast<std::int32_t>(parameters.size());
  base.inputs = inputs.data();
  base.input_count = static_cast<std::int32_t>(inputs.size());
  base.outputs = outputs.data();
  base.output_count = static_cast<std::int32_t>(outputs.size());
  return base;
}

std::string text_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::invalid_argument: return "'invalid argument'";
    case Refusal::not_supported: return "'not supported'";
    case Refusal::either: break;
  }
  return "'invalid argument' or 'not supported'";
}

bool is_documented(Refusal refusal, assay_status status) {
  return (status == ASSAY_INVALID_ARGUMENT && refusal != Refusal::not_supported) ||
         (status == ASSAY_NOT_SUPPORTED && refusal != Refusal::invalid_argument);
}

bool is_wrong_by_schema(const assay_call& right, const WrongCall& wrong) {
  CallParts parts(right);
  wrong.change(parts);
  try {
    check_against_schema(Request::of(parts.call()));
    return false;
  } catch (const InvalidArgument&) {
    return true;
  } catch (const NotSupported&) {
    return true;
  }
}

namespace {

// An attribute or tensor that other ops have, and this one does not; its text lives in the table of tensors.
const char* attribute_of_another_op(std::string_view op) {
  const auto& own = tensors_of(op).attributes;
  for (const OpTensors& other : tensor_schema()) {
    for (const std::string_view each : other.attributes) {
      if (std::find(own.begin(), own.end(), each) == own.end()) return each.data();
    }
  }
  return "no_such_parameter";
}

const char* tensor_of_another_op(std::string_view op, std::vector<TensorSchema> OpTensors::*list) {
  const auto& own = tensors_of(op).*list;
  for (const OpTensors& other : tensor_schema()) {
    for (const TensorSchema& each : other.*list) {
      const auto has_name = [&](const TensorSchema& mine) { return mine.name == each.name; };
      if (each.name.find('#') == std::string::npos && std::none_of(own.begin(), own.end(), has_name)) return each.name.c_str();
    }
  }
  return "no_such_tensor";
}

// An f32 tensor without elements: it shares no memory with another.
assay_tensor empty_tensor(const char* name) {
  assay_tensor tensor{};
  tensor.name = name;
  tensor.dtype = ASSAY_F32;
  tensor.rank = 1;
  return tensor;
}

// Words that may stand in place of `word` and that the op may refuse: for the name of a format the other formats; for a list of
// numbers that of a negative first one.
std::vector<std::string> other_words(std::string_view word) {
  std::vector<std::string> words;
  if (format_named(word).has_value()) {
    for (std::uint32_t code = 0; code <= static_cast<std::uint32_t>(Format::e2m3); ++code) {
      const std::string_view name = name_of(static_cast<Format>(code));
      if (name != word) words.emplace_back(name);
    }
  }
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  if (digits > 0) words.push_back("-1" + std::string(word.substr(digits)));
  return words;
}

// A size whose product with another wraps around to 0, which is how many elements the matrices have.
void make_huge(CallParts& parts, std::size_t at) {
  parts.parameters[at].integer = std::numeric_limits<std::int64_t>::max();
  for (auto* list : {&parts.inputs, &parts.outputs}) {
    for (assay_tensor& each : *list) {
      if (each.dtype == ASSAY_I32 || each.dtype == ASSAY_I64 || each.rank == 0) continue;  // where groups and rows are
      each.shape[0] = each.bytes = 0;
      each.data = nullptr;
    }
  }
}

// The bytes of an element of this type, which is no code that shares a byte; else 0.
std::int64_t whole_bytes(Format type) { return bits_of(type) % 8 == 0 ? bits_of(type) / 8 : 0; }

// Inputs and outputs whose type is what the parameter says, as the schema has it.
std::vector<std::string> tensors_typed_by(const assay_call& call, std::string_view parameter) {
  std::vector<std::string> names;
  const OpTensors& op = tensors_of(call.op);
  for (const auto* list : {&op.in, &op.out}) {
    for (const TensorSchema& each : *list) {
      if (each.type == parameter) names.push_back(each.name);
    }
  }
  return names;
}

// The parameter names another type, and so do its tensors. They take the memory behind them too, which is that of no tensor or a
// reason for a refusal: small tensors alone do not reach the end of an allocation so.
constexpr std::int64_t kSmallTensor = 4096;

void retype(CallParts& parts, std::size_t at, Format type, const std::vector<std::string>& names) {
  parts.parameters[at].text = name_of(type).data();
  for (auto* list : {&parts.inputs, &parts.outputs}) {
    for (assay_tensor& each : *list) {
      if (std::find(names.begin(), names.end(), each.name) == names.end()) continue;
      each.bytes = each.bytes / whole_bytes(static_cast<Format>(each.dtype)) * whole_bytes(type);
      each.dtype = static_cast<assay_dtype>(type);
    }
  }
}

bool can_be_retyped(const assay_call& call, const std::vector<std::string>& names) {
  bool any = false;
  for (const auto& [list, count] : {std::pair(call.inputs, call.input_count), std::pair(call.outputs, call.output_count)}) {
    for (std::int32_t i = 0; i < count; ++i) {
      if (std::find(names.begin(), names.end(), list[i].name) == names.end()) continue;
      if (list[i].bytes > kSmallTensor || whole_bytes(static_cast<Format>(list[i].dtype)) == 0) return false;
      any = true;
    }
  }
  return any;
}

// Collects wrong calls.
class WrongCallList {
 public:
  explicit WrongCallList(const assay_call& right) : right(right) {}
  void add_call(const std::vector<std::int64_t>& algorithms);
  void add_unknown();
  void add_parameters();
  void add_inputs();
  void add_workspace();

  std::vector<WrongCall> all;

 private:
  using Change = std::function<void(CallParts&)>;
  void add(const std::string& what, Change change, Refusal refusal = Refusal::invalid_argument) {
    all.push_back({"", what, what, std::move(change), Decides::always_wrong, refusal});
  }
  // `what`: with {} where the part stands.
  void add_part(const std::string& part, const std::string& what, Change change, Decides decides, Refusal refusal) {
    all.push_back({part, what, fmt::format(fmt::runtime(what), part), std::move(change), decides, refusal});
  }
  void add_parameter(std::size_t at);
  void add_types(std::size_t at, const std::string& name);
  const assay_call& right;
};

void WrongCallList::add_call(const std::vector<std::int64_t>& algorithms) {
  add(
      "the unknown op 'no_such_op'", [](CallParts& parts) { parts.base.op = "no_such_op"; }, Refusal::not_supported);
  add("no op", [](CallParts& parts) { parts.base.op = nullptr; });
  std::int64_t unknown = std::int64_t{1} << 40;
  while (std::find(algorithms.begin(), algorithms.end(), unknown) != algorithms.end()) ++unknown;
  add(
      fmt::format("the unknown algorithm {}", unknown), [=](CallParts& parts) { parts.base.algorithm = unknown; },
      Refusal::either);
  if (std::find(algorithms.begin(), algorithms.end(), -2) == algorithms.end())
    add(
        "the unknown algorithm -2", [](CallParts& parts) { parts.base.algorithm = -2; }, Refusal::either);
}

void WrongCallList::add_unknown() {
  const auto parameter = [&](const std::string& what, const char* name) {
    add(
        what, [=](CallParts& parts) { parts.parameters.push_back(integer_parameter(name, 1)); }, Refusal::not_supported);
  };
  const auto tensor = [&](const std::string& what, std::vector<assay_tensor> CallParts::*list, const char* name) {
    add(
        what, [=](CallParts& parts) { (parts.*list).push_back(empty_tensor(name)); }, Refusal::not_supported);
  };
  parameter("the unknown parameter 'no_such_parameter'", "no_such_parameter");
  const char* other = attribute_of_another_op(right.op);
  parameter(fmt::format("parameter {} of another op", other), other);
  tensor("the unknown input 'no_such_input'", &CallParts::inputs, "no_such_input");
  tensor("the unknown output 'no_such_output'", &CallParts::outputs, "no_such_output");
  other = tensor_of_another_op(right.op, &OpTensors::in);
  tensor(fmt::format("input {} of another op", other), &CallParts::inputs, other);
  other = tensor_of_another_op(right.op, &OpTensors::out);
  tensor(fmt::format("output {} of another op", other), &CallParts::outputs, other);
}

// Values that other calls may have. Where the reference refuses one here, it does not fit the rest of the call: a block that the rule cannot
// have, a storage that the type of the scales cannot have, codes that do not fill bytes.
std::vector<const char*> words_of_other_calls(std::string_view op, std::string_view parameter) {
  if (op != "quantize_by_rule") return {};
  if (parameter == "block") return {"1x32", "2x16", "1x1025", "0x16", "allxall"};
  if (parameter == "storage") return {"packed", "swizzled_128x4", "swizzled_8x4_per_group"};
  return {};
}

void WrongCallList::add_types(std::size_t at, const std::string& name) {
  const std::vector<std::string> names = tensors_typed_by(right, right.parameters[at].name);
  if (!format_named(right.parameters[at].text).has_value() || !can_be_retyped(right, names)) return;
  for (const Format type : {Format::f32, Format::bf16, Format::f16, Format::e4m3, Format::e5m2, Format::i32, Format::i64}) {
    if (name_of(type) == right.parameters[at].text) continue;
    add_part(
        name, fmt::format("{{}}='{}', and tensors of that type", name_of(type)),
        [=](CallParts& parts) { retype(parts, at, type, names); }, Decides::reference, Refusal::either);
  }
}

void WrongCallList::add_parameter(std::size_t at) {
  const assay_parameter& parameter = right.parameters[at];
  const std::string name = fmt::format("parameter {}", parameter.name);
  const auto wrong = [&](const std::string& what, std::function<void(assay_parameter&)> change) {
    add_part(
        name, what, [=](CallParts& parts) { change(parts.parameters[at]); }, Decides::always_wrong, Refusal::invalid_argument);
  };
  const auto other = [&](const std::string& what, std::function<void(assay_parameter&)> change) {
    add_part(
        name, what, [=](CallParts& parts) { change(parts.parameters[at]); }, Decides::reference, Refusal::either);
  };
  add_part(
      name, "no {}",
      [=](CallParts& parts) { parts.parameters.erase(parts.parameters.begin() + static_cast<std::ptrdiff_t>(at)); },
      Decides::reference, Refusal::either);
  add_part(
      name, "{} given twice", [=](CallParts& parts) { parts.parameters.push_back(parts.parameters[at]); }, Decides::always_wrong,
      Refusal::invalid_argument);
  wrong("{} without a name", [](assay_parameter& each) { each.name = nullptr; });
  wrong("{} of the kind 9", [](assay_parameter& each) { each.kind = static_cast<assay_parameter_kind>(9); });
  if (parameter.kind == ASSAY_TEXT) {
    wrong("{} whose text is null", [](assay_parameter& each) { each.text = nullptr; });
    other("{}='no_such_word'", [](assay_parameter& each) { each.text = "no_such_word"; });
    other("{}=''", [](assay_parameter& each) { each.text = ""; });
    for (const std::string& word : other_words(parameter.text)) {
      other(fmt::format("{{}}='{}'", word),
            [kept = std::make_shared<const std::string>(word)](assay_parameter& each) { each.text = kept->c_str(); });
    }
    add_types(at, name);
    other("{}, which is text, as the integer 7", [](assay_parameter& each) { each = integer_parameter(each.name, 7); });
    for (const char* word : words_of_other_calls(right.op, parameter.name)) {
      if (std::string_view(word) != parameter.text)
        other(fmt::format("{{}}='{}'", word), [=](assay_parameter& each) { each.text = word; });
    }
    return;
  }
  other("{}, which is a number, as the text 'seven'", [](assay_parameter& each) {
    each.kind = ASSAY_TEXT;
    each.text = "seven";
  });
  if (parameter.kind != ASSAY_INTEGER) {
    for (const double value : {-1.0, std::numeric_limits<double>::quiet_NaN()})
      other(fmt::format("{{}}={}", value), [=](assay_parameter& each) { each.real = value; });
    return;
  }
  const bool decided_by_contents = std::string_view(parameter.name) == "stride";  // whether its products with splits overflow
  for (const std::int64_t value :
       {std::int64_t{-3}, std::int64_t{-1}, std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    if (value <= 0 || !decided_by_contents)
      other(fmt::format("{{}}={}", value), [=](assay_parameter& each) { each.integer = value; });
  }
  if (std::string_view(parameter.name) == "transposed") {
    const std::int64_t value = 1 - parameter.integer;  // codes then fill bytes along the other extent
    other(fmt::format("{{}}={}", value), [=](assay_parameter& each) { each.integer = value; });
  }
  if (!decided_by_contents) {
    add_part(
        name, "{}=9223372036854775807 beside tensors without elements", [=](CallParts& parts) { make_huge(parts, at); },
        Decides::reference, Refusal::either);
  }
  other("{}, which is an integer, as the number 1.5", [](assay_parameter& each) {
    each.kind = ASSAY_REAL;
    each.real = 1.5;
  });
}

void WrongCallList::add_parameters() {
  for (std::int32_t i = 0; i < right.parameter_count; ++i) add_parameter(static_cast<std::size_t>(i));
}

// Without splits these ops take one tensor: another right call.
bool may_be_absent(std::string_view op, std::string_view input) {
  return input == "splits" && (op == "quantize" || op == "dequantize" || op == "swizzle" || op == "unswizzle");
}

void WrongCallList::add_inputs() {
  for (std::int32_t i = 0; i < right.input_count; ++i) {
    if (may_be_absent(right.op, right.inputs[i].name)) continue;
    add_part(
        fmt::format("input {}", right.inputs[i].name), "no {}",
        [=](CallParts& parts) { parts.inputs.erase(parts.inputs.begin() + i); }, Decides::reference, Refusal::either);
  }
}

void WrongCallList::add_workspace() {
  add("a workspace of -1 bytes", [](CallParts& parts) { parts.base.workspace_bytes = -1; });
  if (right.workspace_bytes <= 0) return;
  add("no workspace", [](CallParts& parts) {
    parts.base.workspace = nullptr;
    parts.base.workspace_bytes = 0;
  });
  add("a workspace that is null", [](CallParts& parts) { parts.base.workspace = nullptr; });
  add("a workspace of one byte fewer", [](CallParts& parts) { --parts.base.workspace_bytes; });
  const auto over = [&](const char* folder, const assay_tensor& tensor) {
    if (tensor.bytes == 0) return;
    add(fmt::format("the workspace at the address of {} {}", folder, tensor.name),
        [data = tensor.data](CallParts& parts) { parts.base.workspace = data; });
  };
  for (std::int32_t i = 0; i < right.input_count; ++i) over("input", right.inputs[i]);
  for (std::int32_t i = 0; i < right.output_count; ++i) over("output", right.outputs[i]);
}

}  // namespace

std::vector<WrongCall> wrong_calls(const assay_call& right, const std::vector<std::int64_t>& algorithms) {
  WrongCallList list(right);
  list.add_call(algorithms);
  list.add_unknown();
  list.add_parameters();
  list.add_inputs();
  list.add_workspace();
  add_wrong_tensors(right, list.all);
  add_wrong_products(right, list.all);
  return std::move(list.all);
}

}  // namespace assay::conformance
