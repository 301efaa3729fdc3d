#include "conformance/report/failure_parts.h"

#include <algorithm>
#include <string_view>

#include "conformance/suites/backend_choice.h"

namespace assay::conformance {

FailureParts failure_parts(const CaseReport& report, const std::string& backend_words) {
  constexpr std::string_view kRepro = "  repro   ";
  FailureParts parts;
  const std::string& text = report.judgement.text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(kRepro)) {
      parts.repro += (parts.repro.empty() ? "" : "\n") + line.substr(kRepro.size());
    } else {
      parts.text += (parts.text.empty() ? "" : "\n") + line;
    }
    at = end + 1;
  }
  if (!parts.repro.empty() || report.suite == "backend") return parts;
  parts.repro = report.line.empty() ? "assay verify " + quoted(report.suite) + " --case " + quoted(report.name)
                                    : "assay repro " + quoted(report.line);
  parts.repro += backend_words;
  return parts;
}

}  // namespace assay::conformance
