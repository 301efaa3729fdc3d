#pragma once
// Words of case lines that have a new name: one table of keys and of values.
//
// The former words remain valid: they parse to the same case. They also stay where other programs hold them:
// - attributes of the C interface and of fixture files (golden/schema.md): backends read them, and fixtures are sealed;
// - names of cases and digests of selections: recorded results and baselines are matched by them.

#include <span>
#include <string>
#include <string_view>

namespace assay::conformance {

struct FormerKey {
  std::string_view key, former;
  std::string_view not_of;  // an op where `key` means something else and has had no other name
};
std::span<const FormerKey> former_keys();

struct FormerValue {
  std::string_view key, value, former;
  std::string_view ops;  // separated by spaces
};
std::span<const FormerValue> former_values();

// The present word for a former one, and the former word for a present one; other words are returned as they are. `key` of a
// value is the present key.
std::string_view present_key(std::string_view op, std::string_view key);
std::string_view former_key(std::string_view op, std::string_view key);
std::string_view present_value(std::string_view op, std::string_view key, std::string_view value);
std::string_view former_value(std::string_view op, std::string_view key, std::string_view value);

// A canonical case line in the present or in the former words. Text that begins with no op is returned as it is.
std::string present_text(std::string_view line);
std::string former_text(std::string_view line);

}  // namespace assay::conformance
