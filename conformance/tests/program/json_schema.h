#pragma once
// Enough of JSON Schema 2020-12 to check a report: type, properties, required, additionalProperties, items, enum, const,
// pattern, minimum, $ref within the document. An unknown keyword is an error, so that none is ignored.

#include <nlohmann/json.hpp>

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace assay::conformance {

class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json document) : document_(std::move(document)) {}

  // What is wrong with `value` under the definition at `pointer` ("/$defs/report"); empty: nothing.
  std::vector<std::string> faults(const nlohmann::json& value, const std::string& pointer) const {
    std::vector<std::string> found;
    check(value, document_.at(nlohmann::json::json_pointer(pointer)), "", found);
    return found;
  }

 private:
  using json = nlohmann::json;

  static bool has_type(const json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    throw std::runtime_error("unknown type " + type);
  }

  void check(const json& value, const json& schema, const std::string& at, std::vector<std::string>& found) const {
    static const std::set<std::string> kKnown{"type",    "properties", "required",   "additionalProperties",
                                              "items",   "enum",       "const",      "pattern",
                                              "minimum", "$ref",       "description"};
    for (const auto& [keyword, argument] : schema.items()) {
      if (kKnown.count(keyword) == 0) throw std::runtime_error("keyword " + keyword + " is not checked");
    }
    const auto bad = [&](const std::string& what) {
      found.push_back((at.empty() ? "/" : at) + ": " + what + ": " + value.dump().substr(0, 200));
    };
    if (schema.contains("$ref"))
      check(value, document_.at(json::json_pointer(schema.at("$ref").get<std::string>().substr(1))), at, found);
    if (schema.contains("type") && !has_type(value, schema.at("type")))
      return bad("is not of type " + schema.at("type").get<std::string>());
    if (schema.contains("const") && value != schema.at("const")) bad("is not " + schema.at("const").dump());
    if (schema.contains("enum") &&
        std::find(schema.at("enum").begin(), schema.at("enum").end(), value) == schema.at("enum").end())
      bad("is none of the values");
    if (schema.contains("minimum") && value < schema.at("minimum")) bad("is too small");
    if (schema.contains("pattern") &&
        !std::regex_search(value.get<std::string>(), std::regex(schema.at("pattern").get<std::string>())))
      bad("does not match");
    if (schema.contains("required")) {
      for (const json& name : schema.at("required")) {
        if (!value.contains(name.get<std::string>())) bad("lacks " + name.get<std::string>());
      }
    }
    if (value.is_object()) check_members(value, schema, at, found);
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) check(value[i], schema.at("items"), at + "/" + std::to_string(i), found);
    }
  }

  void check_members(const json& value, const json& schema, const std::string& at, std::vector<std::string>& found) const {
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        check(member, properties.at(name), at + "/" + name, found);
      } else if (schema.contains("additionalProperties")) {
        const json& others = schema.at("additionalProperties");
        if (others.is_object()) {
          check(member, others, at + "/" + name, found);
        } else if (!others.get<bool>()) {
          found.push_back(at + "/" + name + ": is not in the schema");
        }
      }
    }
  }

  json document_;
};

}  // namespace assay::conformance
