#pragma once
// Waivers: failures that are known, each with a reason, a link, an owner and a last day, in a TOML file.
//
//   [[waiver]]
//   case = "quantize recipe=mxfp8 splits=8,0,20 K=272 seed=5"   # or FILE.h5/CASE; or cases = "WORDS", as `assay run` takes them
//   fingerprint = "3fa2b1c04d5e6f70"                            # of the failure, or a list of several
//   reason = "rows are exchanged where a group is empty"
//   link = "https://example.com/issues/12"
//   owner = "kernels@example.com"
//   expires = 2027-01-31                                        # the last day on which it holds
//
// Optional: `backend` and `device` (patterns; it holds for these alone), `setting` (a pattern; else the backend's own choice alone).
// A failure with another fingerprint is not covered.

#include <string>
#include <string_view>
#include <vector>

#include "conformance/report/report.h"

namespace assay::conformance {

struct Waiver {
  std::string at;                  // "waivers.toml:12"
  std::string one_case;            // a case line in its canonical form, or FILE.h5/CASE; empty: `words` select
  std::vector<std::string> words;  // every one matches
  std::vector<std::string> fingerprints;
  std::string reason, link, owner, expires;  // expires: "2027-01-31"
  std::string backend, device, setting;      // patterns; empty: any backend, any device, no setting
};

// Errors (std::runtime_error, "waivers.toml:12: ..."): the file cannot be read, is not TOML, or a waiver has an unknown key, lacks one,
// or has a value of the wrong form. `source` names it in errors.
std::vector<Waiver> read_waivers(const std::string& path);
std::vector<Waiver> parse_waivers(std::string_view text, const std::string& source);

class Waivers {
 public:
  // `day`: on which the cases were judged, "2026-11-23".
  Waivers(std::vector<Waiver> all, TestedBackend tested, std::string day);

  // What the waivers say of a case; empty where none selects it, and where it has no verdict that a waiver concerns: it is absent, flaky
  // or was not judged. A pass and another failure are reported for the first waiver that selects the case.
  std::optional<WaiverStanding> standing(const CaseReport& report) const;
  // Places of waivers that hold for this backend and select none of these cases.
  std::vector<std::string> unused(const std::vector<CaseReport>& cases) const;

 private:
  bool selects(const Waiver& waiver, const CaseReport& report) const;

  std::vector<Waiver> all_;  // that hold for this backend and device
  std::string day_;
};

// Of now, in UTC: "2026-11-23".
std::string today();

// Drafts for failures that no waiver covers, to be completed: their reason, link, owner and last day are empty, which read_waivers refuses.
std::string drafted_waivers(const std::vector<CaseReport>& cases);

}  // namespace assay::conformance
