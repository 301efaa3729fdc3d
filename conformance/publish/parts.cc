// Parts of several formats of a report.

#include <fmt/format.h>

#include <ctime>
#include <span>

#include "conformance/publish/formats.h"
#include "conformance/report/report_counts.h"
#include "golden/io/sha256.h"

namespace assay::conformance {

std::string absence_proof() {
  return "the call was made, returned NOT_SUPPORTED and changed no memory, over two different contents of it";
}

std::string first_line_of_failure(const PublishedCase& each) {
  const Judgement& judgement = each.report.judgement;
  if (judgement.findings.empty()) return std::string(name_of(judgement.verdict));
  const Finding& finding = judgement.findings.front();
  if (finding.element < 0) return first_line(finding.text);
  return fmt::format("{}: {} of {} wrong, the first at {}: got {}, want {}", finding.output, finding.wrong, finding.compared,
                     finding.place, finding.got, finding.want);
}

std::string waiver_text(const WaiverStanding& waiver) {
  return fmt::format("{} ({}; {}, until {}, {})", waiver.reason, waiver.at, waiver.owner, waiver.expires, waiver.link);
}

std::int64_t milliseconds_of(const std::string& date) {
  std::tm parts{};
  if (strptime(date.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return 0;
  return static_cast<std::int64_t>(timegm(&parts)) * 1000;
}

std::string hex_digest(std::string_view text) { return golden::sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace assay::conformance
