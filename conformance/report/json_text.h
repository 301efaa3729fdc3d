#pragma once
// Texts of JSON that another program may have written, or cut off.

#include <nlohmann/json.hpp>
#include <string>

namespace assay::conformance {

// The text at `place`, a JSON pointer such as "/host/name". Empty where there is none, or a value of another type, for which
// nlohmann::json::value() throws.
inline std::string text_at(const nlohmann::json& of, const char* place) {
  const nlohmann::json::json_pointer pointer(place);
  return of.contains(pointer) && of.at(pointer).is_string() ? of.at(pointer).get<std::string>() : "";
}

}  // namespace assay::conformance
