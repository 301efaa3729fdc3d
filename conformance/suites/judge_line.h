#pragma once
// One case line on an open backend: the judge that its op and keys ask for, and the report.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/judge/prepared_case.h"
#include "conformance/report/report.h"
#include "conformance/suites/backend_choice.h"
#include "conformance/suites/parallel_judging.h"

namespace assay::conformance {

// Settings under which each case is judged beside the backend's own choice.
struct SettingsToTry {
  bool all_algorithms = false;
  std::vector<std::pair<std::string, std::string>> axes;  // NAME, VALUE
  bool any() const { return all_algorithms || !axes.empty(); }
};

// What a report says of a case before it is judged.
CaseReport report_for(const CaseLine& line);

// Notes in the reports which device has judged, if the run was given devices.
inline void note_device(std::vector<CaseReport>& reports, const Judged& judged, const BackendChoice& choice) {
  for (CaseReport& each : reports) {
    if (judged.device < choice.devices.size()) each.device = choice.devices[judged.device].number;
  }
}

// Judges one case. `prepared`, if given, is what prepare() returned for the line.
CaseReport judge_line(const CaseLine& line, Judged judged, const BackendChoice& choice, PreparedCase* prepared = nullptr);

// Judges the case once for each setting; replayed cases are judged with the backend's own choice alone.
std::vector<CaseReport> judge_under_settings(const CaseLine& line, Judged judged, const BackendChoice& choice,
                                             const SettingsToTry& settings);

// What a backend stated last for each kind of case. Many threads may use it at once.
class Statements {
 public:
  std::optional<assay_numerics> of(const CaseLine& line) const;
  void note(const CaseLine& line, const assay_numerics& stated);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, assay_numerics> stated_;
};

// The case, prepared for a backend that states the same as for the last case of this kind. Null where it is large or of a kind that is not prepared, and where
// judging it reports the same again, such as a failure. Throws nothing.
std::unique_ptr<PreparedCase> prepare(const CaseLine& line, const BackendChoice& choice, const Statements& statements);

}  // namespace assay::conformance
