#pragma once
// Verdicts added up, for the summary and the JSON.

#include <map>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace assay::conformance {

// Cases of the backend. The self-check's are not among them: that the suite works is no verdict on a backend.
Counts count_cases(const std::vector<CaseReport>& cases);

// What passes rest on: "bits", "order-free bits", "bound", each perhaps "expected by" another backend.
struct BasisCounts {
  std::int64_t cases = 0, elements = 0;
  std::int64_t bounded = 0;    // of the elements: any value within a computed interval passed; only one value did of the others
  std::int64_t unbounded = 0;  // elements that were not compared, not counted in `elements`
};
std::map<std::string, BasisCounts> bases_of(const std::vector<CaseReport>& cases);

// "88 by bits, 12 by order-free bits, 5 within bounds; 3 unbounded, not compared". An element within bounds that every order of
// sums gives the same value is one by order-free bits.
std::string elements_text(const std::map<std::string, BasisCounts>& bases);

// "bound, expected by bringup; made eagerly instead of replayed, ...": what a verdict rests on, where that is not bits of the
// reference or the case was judged in another way than it asks for; else empty.
std::string standing_text(const Judgement& judgement);

// Cases that were judged in another way than they ask for, by that way.
std::map<std::string, std::int64_t> ways_of(const std::vector<CaseReport>& cases);

// What the products came to under one setting.
struct SettingCounts {
  Counts counts;
  std::int64_t known_elements = 0;               // of counts.elements: the backend stated the plan
  std::map<std::string, std::int64_t> unknown;   // cases without a stated plan, by variety
};
// By setting; the backend's own choice first. Cases that are no product, or were not run to a comparison, have no plan.
std::map<std::string, SettingCounts> settings_of(const std::vector<CaseReport>& cases);

std::string first_line(const std::string& text);

// "812", "81.2k", "8.1M", "8.1G": at most six letters, for tables.
std::string short_number(std::int64_t number);

}  // namespace assay::conformance
