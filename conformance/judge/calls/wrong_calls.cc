#include "conformance/judge/calls/wrong_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace assay::conformance {
namespace {

// Another type of the same width.
assay_dtype other_type(assay_dtype type) {
  switch (type) {
    case ASSAY_F32: return ASSAY_I32;
    case ASSAY_I32: return ASSAY_F32;
    case ASSAY_BF16: return ASSAY_F16;
    case ASSAY_F16: return ASSAY_BF16;
    case ASSAY_E4M3: return ASSAY_E8M0;
    default: return ASSAY_E4M3;
  }
}

assay_parameter integer_parameter(const char* name, std::int64_t value) {
  assay_parameter parameter{};
  parameter.name = name;
  parameter.kind = ASSAY_INTEGER;
  parameter.integer = value;
  return parameter;
}

// Without splits these ops take one tensor: another right call.
bool may_be_absent(std::string_view op, std::string_view input) {
  return input == "splits" && (op == "quantize" || op == "dequantize" || op == "swizzle" || op == "unswizzle");
}

using Tensors = std::vector<assay_tensor> CallParts::*;

// Ways to make one tensor wrong that apply to every op.
void add_wrong_tensor(std::vector<WrongCall>& all, Tensors where, std::size_t i, const std::string& name) {
  const auto add = [&](const std::string& what, const std::function<void(assay_tensor&)>& change) {
    all.push_back({fmt::format("{} {}", name, what), [=](CallParts& parts) { change((parts.*where)[i]); }, false});
  };
  add("of 8 bytes fewer than its shape takes", [](assay_tensor& each) { each.bytes -= 8; });
  add("of a negative extent", [](assay_tensor& each) {
    each.shape[0] = -each.shape[0] - 1;
    each.bytes = -each.bytes - 1;
  });
  add("of type 99", [](assay_tensor& each) { each.dtype = static_cast<assay_dtype>(99); });
  add("of rank -1", [](assay_tensor& each) { each.rank = -1; });
}

}  // namespace

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

namespace {

// Collects wrong calls.
class WrongCallList {
 public:
  explicit WrongCallList(const assay_call& right) : right(right) {}
  void add_names(const std::vector<std::int64_t>& algorithms);
  void add_parameters();
  void add_inputs();
  void add_outputs();
  void add_workspace();

  std::vector<WrongCall> all;

 private:
  void add(const std::string& what, std::function<void(CallParts&)> change, bool reference_decides = false) {
    all.push_back({what, std::move(change), reference_decides});
  }
  const assay_call& right;
};

void WrongCallList::add_names(const std::vector<std::int64_t>& algorithms) {
  add("the unknown op 'no_such_op'", [](CallParts& parts) { parts.base.op = "no_such_op"; });
  add("the unknown parameter 'no_such_parameter'",
      [](CallParts& parts) { parts.parameters.push_back(integer_parameter("no_such_parameter", 1)); });
  std::int64_t unknown = std::int64_t{1} << 40;
  while (std::find(algorithms.begin(), algorithms.end(), unknown) != algorithms.end()) ++unknown;
  add(fmt::format("the unknown algorithm {}", unknown), [=](CallParts& parts) { parts.base.algorithm = unknown; });
  if (right.input_count > 0) {
    add("the unknown input 'no_such_input'", [](CallParts& parts) {
      parts.inputs.push_back(parts.inputs[0]);
      parts.inputs.back().name = "no_such_input";
    });
  }
  if (right.output_count > 0) {
    add("the unknown output 'no_such_output'", [](CallParts& parts) {
      parts.outputs.push_back(parts.outputs[0]);
      parts.outputs.back().name = "no_such_output";
    });
  }
}

void WrongCallList::add_parameters() {
  for (std::int32_t i = 0; i < right.parameter_count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = right.parameters[i].name;
    add(
        "no parameter " + name,
        [=](CallParts& parts) { parts.parameters.erase(parts.parameters.begin() + static_cast<std::ptrdiff_t>(at)); }, true);
    if (right.parameters[i].kind == ASSAY_TEXT) {
      add(
          fmt::format("parameter {}='no_such_word'", name), [=](CallParts& parts) { parts.parameters[at].text = "no_such_word"; },
          true);
      add(
          fmt::format("parameter {}, which is text, as the integer 7", name),
          [=](CallParts& parts) { parts.parameters[at] = integer_parameter(parts.parameters[at].name, 7); }, true);
    } else {
      add(
          fmt::format("parameter {}, which is a number, as the text 'seven'", name),
          [=](CallParts& parts) {
            parts.parameters[at].kind = ASSAY_TEXT;
            parts.parameters[at].text = "seven";
          },
          true);
    }
    if (right.parameters[i].kind == ASSAY_INTEGER) {
      add(
          fmt::format("parameter {}=-3", name), [=](CallParts& parts) { parts.parameters[at].integer = -3; }, true);
    }
  }
}

void WrongCallList::add_inputs() {
  for (std::int32_t i = 0; i < right.input_count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = fmt::format("input {}", right.inputs[i].name);
    if (!may_be_absent(right.op, right.inputs[i].name)) {
      add(
          "no " + name, [=](CallParts& parts) { parts.inputs.erase(parts.inputs.begin() + static_cast<std::ptrdiff_t>(at)); },
          true);
    }
    add_wrong_tensor(all, &CallParts::inputs, at, name);
    add(
        name + " of another type", [=](CallParts& parts) { parts.inputs[at].dtype = other_type(parts.inputs[at].dtype); }, true);
  }
}

void WrongCallList::add_outputs() {
  for (std::int32_t i = 0; i < right.output_count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = fmt::format("output {}", right.outputs[i].name);
    add_wrong_tensor(all, &CallParts::outputs, at, name);
    add(
        name + " of another type", [=](CallParts& parts) { parts.outputs[at].dtype = other_type(parts.outputs[at].dtype); },
        true);
    // The number of scales may depend on the contents of the splits, which a host need not read.
    const std::string_view output = right.outputs[i].name;
    if (right.outputs[i].rank < 1 || right.outputs[i].shape[0] < 1 || output.find("scale_inv") != std::string_view::npos)
      continue;
    add(
        name + " of one row more",
        [=](CallParts& parts) {
          assay_tensor& each = parts.outputs[at];
          each.bytes += each.bytes / each.shape[0];
          ++each.shape[0];
        },
        true);
    if (right.outputs[i].shape[0] > 1) {
      add(
          name + " of one row fewer",
          [=](CallParts& parts) {
            assay_tensor& each = parts.outputs[at];
            each.bytes -= each.bytes / each.shape[0];
            --each.shape[0];
          },
          true);
    }
  }
}

void WrongCallList::add_workspace() {
  if (right.workspace_bytes > 0) {
    add("no workspace", [](CallParts& parts) {
      parts.base.workspace = nullptr;
      parts.base.workspace_bytes = 0;
    });
  }
}

}  // namespace

std::vector<WrongCall> wrong_calls(const assay_call& right, const std::vector<std::int64_t>& algorithms) {
  WrongCallList list(right);
  list.add_names(algorithms);
  list.add_parameters();
  list.add_inputs();
  list.add_outputs();
  list.add_workspace();
  return std::move(list.all);
}

}  // namespace assay::conformance
