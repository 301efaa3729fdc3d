#include "listing.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/cases/former_words.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/suites/shards.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/rules/scale_rule.h"
#include "reference/types/error.h"

namespace assay::python {
namespace {

namespace nb = nanobind;
using namespace conformance;

std::vector<std::string> texts_of(const std::vector<CaseLine>& lines) {
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (const CaseLine& each : lines) texts.push_back(to_text(each));
  return texts;
}

std::vector<std::string> cases(const std::string& profile, const std::vector<std::string>& words) {
  const auto named = profile_named(profile);
  require(named.has_value(), "profile", profile, "smoke, standard or full");
  const Selection selection = select(catalogue(*named), words);
  for (const std::string& word : selection.unmatched)
    throw InvalidArgument("where", word, "a word that some case of profile " + profile + " has");
  return texts_of(selection.cases);
}

std::vector<std::string> shard_of(const std::vector<std::string>& texts, std::int64_t index, std::int64_t total) {
  std::vector<CaseLine> lines;
  for (const std::string& each : texts) lines.push_back(parse_case_line(each));
  return texts_of(shard(lines, index, total));
}

nb::dict line_parts(const std::string& text) {
  const CaseLine line = parse_case_line(text);
  nb::dict keys;
  for (const Parameter& each : line.parameters) keys[each.key.c_str()] = each.value;
  nb::dict made;
  made["line"] = to_text(line);
  made["name"] = name_of(line);
  made["op"] = line.op;
  made["keys"] = keys;
  return made;
}

// Attributes of a call, which have the former words, in those of case lines, and the other way round.
nb::dict in_words(const std::string& op, const nb::dict& attributes, bool of_lines) {
  nb::dict made;
  for (const auto& [name, value] : attributes) {
    const auto word = nb::cast<std::string>(name);
    const std::string_view key = of_lines ? present_key(op, word) : word, other = of_lines ? key : former_key(op, word);
    nb::object each = nb::borrow(value);
    if (nb::isinstance<nb::str>(value)) {
      const auto text = nb::cast<std::string>(value);
      each = nb::cast(std::string(of_lines ? present_value(op, key, text) : former_value(op, key, text)));
    }
    made[std::string(other).c_str()] = each;
  }
  return made;
}

// The keys of an op, in the order of canonical text, with their defaults and words.
nb::dict op_keys(const std::string& op) {
  nb::dict made;
  for (const KeySchema& each : op_named(op).keys) {
    nb::dict key;
    key["default"] = std::string(each.fallback);
    key["values"] = value_text(each);
    key["help"] = std::string(each.help);
    made[std::string(each.key).c_str()] = key;
  }
  return made;
}

std::vector<std::string> ops() {
  std::vector<std::string> names;
  for (const OpSchema& each : case_schema()) names.emplace_back(each.op);
  return names;
}

nb::list presets() {
  nb::list made;
  for (const ScaleRule& rule : scale_rules()) {
    nb::list blocks, outputs;
    for (const BlockShape& each : rule.blocks) blocks.append(to_text(each));
    for (const Format each : rule.outputs) outputs.append(std::string(name_of(each)));
    nb::dict row;
    row["name"] = rule.name;
    row["blocks"] = nb::tuple(blocks);
    row["outputs"] = nb::tuple(outputs);
    row["scale_type"] = std::string(name_of(rule.scale_type));
    row["storage"] = rule.storage;
    row["rule"] = rule.text;
    row["activation"] = rule.activation_text;
    row["source"] = rule.source;
    row["evidence"] = rule.evidence;
    made.append(row);
  }
  return made;
}

nb::list units() {
  nb::list made;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    nb::dict row;
    row["name"] = std::string(unit.name);
    row["architecture"] = std::string(unit.architecture);
    row["instruction"] = std::string(unit.instruction);
    row["products_per_step"] = unit.products_per_step;
    row["fraction_bits"] = unit.fraction_bits;
    row["measured"] = unit.measured_by_us;
    row["evidence"] = std::string(unit.evidence);
    made.append(row);
  }
  return made;
}

nb::list plans() {
  nb::list made;
  for (const AccumulationPlan& plan : accumulation_plans()) {
    nb::dict row;
    row["name"] = std::string(plan.name);
    row["line"] = plan_line(plan);
    row["evidence"] = std::string(evidence_of(plan));
    made.append(row);
  }
  return made;
}

}  // namespace

void bind_listing(nb::module_& module) {
  module.def("cases", cases, nb::arg("profile"), nb::arg("words"), "Case lines of a profile that every word matches.");
  module.def("shard", shard_of, nb::arg("lines"), nb::arg("index"), nb::arg("total"),
             "The lines of one of `total` parts of equal work.");
  module.def("line_parts", line_parts, nb::arg("line"), "Canonical text, name, op and given keys of a case line.");
  module.def("op_keys", op_keys, nb::arg("op"), "The keys of an op.");
  module.def("in_words", in_words, nb::arg("op"), nb::arg("attributes"), nb::arg("of_lines"),
             "Attributes in the words of case lines, or the words of case lines as attributes.");
  module.def("ops", ops, "Every op.");
  module.def("presets", presets, "Scale rules.");
  module.def("units", units, "Rows of the tensor-core table.");
  module.def("plans", plans, "Accumulation plans that have names.");
}

}  // namespace assay::python
