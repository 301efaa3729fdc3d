#pragma once
// Verdicts added up, for the summary and the JSON.

#include <map>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace assay::conformance {

// Cases of the backend. Those of the self-check do not count: they judge the suite, not the backend.
Counts count_cases(const std::vector<CaseReport>& cases);

// Passes by basis: "bits", "order-free bits", "bound", each perhaps "expected by" another backend.
struct BasisCounts {
  std::int64_t cases = 0, elements = 0;
  std::int64_t bounded = 0;    // of the elements: any value within a computed interval passes; the others have one right value
  std::int64_t unbounded = 0;  // elements that were not compared, not counted in `elements`
};
std::map<std::string, BasisCounts> bases_of(const std::vector<CaseReport>& cases);

// "88 by bits, 12 by order-free bits, 5 within bounds; 3 unbounded, not compared". An element within bounds that every order of
// sums gives the same value is one by order-free bits.
std::string elements_text(const std::map<std::string, BasisCounts>& bases);

// "bound, expected by emulated; made eagerly instead of replayed, ...": the basis of a verdict, where it is not bits of the
// reference, and how the case was judged where that is not what it requests; else empty.
std::string standing_text(const Judgement& judgement);

// Numbers of cases that were judged in another way than they request, by that way.
std::map<std::string, std::int64_t> ways_of(const std::vector<CaseReport>& cases);

// Numbers of cases by device, where the run named devices.
std::map<std::int64_t, std::int64_t> devices_of(const std::vector<CaseReport>& cases);

// Numbers of cases of a run with predictions, by how their expected outputs were had.
std::map<Predicted, std::int64_t> predicted_of(const std::vector<CaseReport>& cases);

// Results of the products under one setting.
struct SettingCounts {
  Counts counts;
  std::int64_t known_elements = 0;              // of counts.elements: the backend stated the plan
  std::map<std::string, std::int64_t> unknown;  // cases without a stated plan, by variety
};
// By setting; the backend's own choice first. Cases that are not products, or were not compared, have no plan.
std::map<std::string, SettingCounts> settings_of(const std::vector<CaseReport>& cases);

std::string first_line(const std::string& text);

// "812", "81.2k", "8.1M", "8.1G": at most six letters, for tables.
std::string short_number(std::int64_t number);

}  // namespace assay::conformance
