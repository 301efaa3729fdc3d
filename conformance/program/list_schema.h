#pragma once
// The schema of cases as `assay list --schema` gives it: every op or one, its attributes, tensors and keys.

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace assay::conformance {

// Lines of at most 100 columns. Errors (InvalidArgument): an unknown op.
std::string schema_text(const std::string& op = "");

// {"ops": [{"op", "help", "attributes", "in", "out", "keys"}]}; out/ gives the number of elements that are compared. Errors: as above.
nlohmann::json schema_json(const std::string& op = "");

}  // namespace assay::conformance
