#include "conformance/program/list_schema.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case_schema.h"
#include "conformance/cases/former_words.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/support/wrap.h"

namespace assay::conformance {
namespace {

using Json = nlohmann::json;

// A scenario is several calls, whose tensors are those of their ops.
bool has_tensors(const OpSchema& op) { return op.op != "scenario"; }

std::vector<const OpSchema*> ops_of(const std::string& op) {
  if (!op.empty()) return {&op_named(op)};
  std::vector<const OpSchema*> all;
  for (const OpSchema& each : case_schema()) all.push_back(&each);
  return all;
}

std::vector<FormerValue> former_values_of(const OpSchema& op, const KeySchema& key) {
  std::vector<FormerValue> all;
  for (const FormerValue& each : former_values()) {
    if (each.key == key.key && former_value(op.op, key.key, each.value) == each.former) all.push_back(each);
  }
  return all;
}

Json json_of(const TensorSchema& tensor, bool is_input) {
  Json made{{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}};
  if (!tensor.grouped_shape.empty()) made["grouped_shape"] = tensor.grouped_shape;
  if (!tensor.when.empty()) made["when"] = tensor.when;
  if (is_input) {
    made["need"] = name_of(tensor.need);
  } else {
    made["compared"] = name_of(tensor.compared);
    if (!tensor.written.empty()) made["compared_elements"] = tensor.written;
  }
  if (!tensor.help.empty()) made["help"] = tensor.help;
  return made;
}

// "  former words, ...: itype for x_type, ..."; empty where the op has none.
std::string former_words_text(const OpSchema& op) {
  std::string words;
  const auto add = [&](const std::string& former, const std::string& present) {
    words += (words.empty() ? "" : ", ") + former + " for " + present;
  };
  for (const KeySchema& key : op.keys) {
    const std::string name(key.key), former(former_key(op.op, key.key));
    if (former != name) add(former, name);
    for (const FormerValue& each : former_values_of(op, key))
      add(name + "=" + std::string(each.former), name + "=" + std::string(each.value));
  }
  if (words.empty()) return "";
  return "  " + wrapped("former words, which still read; attributes and names of cases keep them: " + words, 6, 2) + '\n';
}

Json json_of(const OpSchema& op, const KeySchema& key) {
  Json made{{"key", key.key}, {"values", value_text(key)}, {"help", key.help}};
  made["required"] = key.fallback == "required";
  if (key.fallback != "required" && key.fallback != "none") made["default"] = key.fallback;
  if (!key.only_with.empty()) made["only_with"] = key.only_with;
  if (former_key(op.op, key.key) != key.key) made["former"] = former_key(op.op, key.key);
  for (const FormerValue& each : former_values_of(op, key)) made["former_values"][std::string(each.value)] = each.former;
  return made;
}

}  // namespace

std::string schema_text(const std::string& op) {
  std::string text;
  for (const OpSchema* each : ops_of(op)) {
    text += '\n' + wrapped(std::string(each->op) + ": " + std::string(each->help), 2, 0) + '\n';
    text += has_tensors(*each) ? describe_tensors(tensors_of(each->op))
                               : "  attributes and tensors: those of the steps, each an op\n";
    text += "  keys of a case line\n";
    const std::string keys = describe_keys(*each);
    text += keys + former_words_text(*each);
  }
  return describe_tensor_words() + text;
}

nlohmann::json schema_json(const std::string& op) {
  Json ops = Json::array();
  for (const OpSchema* each : ops_of(op)) {
    Json made{{"op", each->op}, {"help", each->help}};
    if (has_tensors(*each)) {
      const OpTensors& tensors = tensors_of(each->op);
      made["attributes"] = tensors.attributes;
      made["in"] = made["out"] = Json::array();
      for (const TensorSchema& tensor : tensors.in) made["in"].push_back(json_of(tensor, true));
      for (const TensorSchema& tensor : tensors.out) made["out"].push_back(json_of(tensor, false));
    }
    made["keys"] = Json::array();
    for (const KeySchema& key : each->keys) made["keys"].push_back(json_of(*each, key));
    ops.push_back(std::move(made));
  }
  return Json{{"ops", std::move(ops)}};
}

}  // namespace assay::conformance
