#pragma once
// One fault of a case as data: the same as the text of a failure, for programs that read reports.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/judge/compare/compare.h"

namespace assay::conformance {

struct Finding {
  // "bits" and "bound": an output that is compared; "memory": a canary, an input or padding that the call changed; "call":
  // a function of the backend that failed; "run to run": two runs that differ; "statement": numerics that cannot be
  // followed; "skip": an absence without proof; "other": anything else.
  std::string kind;
  std::string output;          // "rowwise_data e4m3 [255,512]"; empty where no output is meant
  std::string when;            // "replay 3 of 4"; empty: the call itself
  std::int64_t compared = 0;   // elements of the output that were compared
  std::int64_t wrong = 0;      // of those
  std::int64_t element = -1;   // the first wrong one, from the start of the output; -1: none
  std::string place;           // the same as coordinates: "group 1, row 5, column 60"
  std::string got_hex, got;    // its bits, and the value they stand for
  std::string want_hex, want;  // kind "bound": no bits, and "LOW to HIGH"
  std::string where;           // what the wrong elements have in common
  std::vector<std::string> hints;
  UlpHistogram ulp;            // distances of the wrong elements, for floating types
  std::vector<WrongMap> maps;  // where they lie, of the first groups that have any
  std::string digest;          // of the places and values of all of them, in hex; empty: of an earlier version
  std::string text;            // kinds that have no element
};

// Of an output that differs.
Finding finding_of(const Difference& difference);

// Sets bits and value from what show_element says: "0x81 (-0.001953125)".
void set_got(Finding& finding, const std::string& shown);

// Of a kind that has no element.
inline Finding finding_of(std::string kind, std::string text) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.text = std::move(text);
  return finding;
}

}  // namespace assay::conformance
