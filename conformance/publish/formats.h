#pragma once
// A report in the formats that CI servers and test databases read. Each is a function of the result files alone: the same files give
// the same bytes, in any order. Texts of result files are escaped.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

#include "conformance/publish/collected.h"

namespace assay::conformance {

// JUnit XML, valid under the schemas of Ant and of Jenkins. An absence is <skipped> with its proof, a waived failure <skipped> with its
// waiver; a flaky case and a waiver that is out of date are failures; what was not judged is an error.
std::string junit_xml(const Collected& all);

// Common Test Report Format (ctrf.io), specification 0.0.0.
nlohmann::json ctrf_json(const Collected& all);

// KCIDB of KernelCI, schema 5.3. `origin` names the system that submits: lower-case letters, digits and '_'. Waivers are issues, and
// the failures that they cover incidents of them.
nlohmann::json kcidb_json(const Collected& all, const std::string& origin);

// Markdown for the summary of a CI job.
std::string summary_markdown(const Collected& all);

// One HTML file without scripts and without other files.
std::string report_html(const Collected& all);

// "assay: 812 passed, 3 failed", as SVG.
std::string badge_svg(const Collected& all);

// Parts of several formats.
std::string absence_proof();                                   // what proves an absence
std::string first_line_of_failure(const PublishedCase& each);  // its first finding in one line
std::string waiver_text(const WaiverStanding& waiver);         // "REASON (waivers.toml:12; OWNER, until 2027-01-31, LINK)"
std::int64_t milliseconds_of(const std::string& date);         // since 1970; 0 for no date
std::string hex_digest(std::string_view text);                 // SHA-256

}  // namespace assay::conformance
