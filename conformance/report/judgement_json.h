#pragma once
// A judgement as JSON and back, for reports, for files of results that a run resumes from, and between processes.
// conformance/report/report.schema.json says what each field means.

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "conformance/judge/judge.h"

namespace assay::conformance {

std::optional<Verdict> verdict_named(std::string_view name);
std::optional<CheckBasis> basis_named(std::string_view name);
std::optional<Predicted> predicted_named(std::string_view name);

nlohmann::json to_json(const Finding& finding);
nlohmann::json to_json(const Judgement& judgement);

// judgement_from(to_json(j)) is j again. Errors: nlohmann::json::exception where a field is missing or of another type,
// std::runtime_error where a verdict or a basis has an unknown name.
Judgement judgement_from(const nlohmann::json& entry);

// One line of text. Bytes that are not UTF-8 are replaced by U+FFFD: text of a backend must not make a report invalid.
std::string line_of(const nlohmann::json& value);

}  // namespace assay::conformance
