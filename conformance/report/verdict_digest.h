#pragma once
// A digest of what a run found: equal for equal verdicts, in whatever order, time, place or number of shards they were found.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace assay::conformance {

// SHA-256 of one line for each verdict, sorted by its bytes and ended by a newline. A line has these members of the entry, with
// tabs between them: suite, case (name, where there is no case line), setting, verdict, ground, elements, bounded, unbounded, plan, unit, expected_by. An absent
// member is empty, or 0 where it is a number. Texts and values of failures are not part of it: they may depend on the order of
// cases. Errors: nlohmann::json::exception for an entry that is no case of a report.
std::string verdict_digest(const std::vector<nlohmann::json>& cases);

// The line of one verdict, with its newline.
std::string digested_line(const nlohmann::json& entry);

}  // namespace assay::conformance
