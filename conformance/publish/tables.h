#pragma once
// The tables that the pages of a report have in common.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/publish/collected.h"

namespace assay::conformance {

// Cases of one implementation, op and recipe, by class of shape.
struct ReportRow {
  std::size_t implementation = 0;
  std::string op, recipe;
  std::map<std::string, Counts> shapes;
  Counts all;
};
std::vector<ReportRow> report_rows(const Collected& all);    // in the order of the cases; the self-check is left out
std::vector<std::string> used_shapes(const Collected& all);  // classes that have a case, in the order of shape_classes()

// Absences by their reason, the most frequent first.
struct Absence {
  std::size_t implementation = 0;
  std::string reason;
  std::map<std::string, std::int64_t> where;  // "grouped_gemm nvfp4": cases
  std::int64_t cases = 0;
};
std::vector<Absence> absences(const Collected& all);

// Accumulation plans that implementations stated, and what their verdicts rest on.
struct PlanRow {
  std::size_t implementation = 0;
  std::string plan;                           // "no plan stated" where there is none
  std::string ground;                         // how it is known
  std::map<std::string, std::int64_t> bases;  // passes by what was checked
  std::int64_t passed = 0, not_passed = 0, elements = 0;
};
std::vector<PlanRow> plan_rows(const Collected& all);

// The slowest first.
std::vector<const PublishedCase*> slowest(const Collected& all, std::size_t most);
std::vector<const PublishedCase*> failures(const Collected& all);
std::vector<const PublishedCase*> waived(const Collected& all);  // covered, expired and passing ones

std::string counts_text(const Counts& counts);  // "12 passed, 1 failed, 3 absent, 1 flaky, 2 waived, 1 other"
std::string seconds_text(double seconds);       // "12.3 s", "4.1 ms"

}  // namespace assay::conformance
