#pragma once
// The outcome of a run. Several can apply; the exit code is the first of 9, 3, 1, 6, 7, 5, and all are listed.

#include <set>
#include <string>
#include <vector>

namespace assay::conformance {

enum class ExitCode : int {
  passed = 0,            // at least one case ran and every requested case passed; or a shard is empty
  failed = 1,            // at least one failure
  usage = 2,             // wrong usage
  bad_fixture = 3,       // a fixture is unreadable, truncated, of another schema or inconsistent
  nothing_selected = 4,  // no case was selected, in all shards together
  incomplete = 5,        // interrupted, a shard missing, or a case that did not finish
  unproven_skip = 6,     // a path that is declared absent and is not
  stale_waiver = 7,      // a waiver out of date, or a waived case that passes
  machine_failed = 9,    // no device where one was required, device lost, out of memory on the harness side
};

class Outcome {
 public:
  void add(ExitCode code) { seen_.insert(code); }
  ExitCode exit_code() const {
    for (const ExitCode code : {ExitCode::machine_failed, ExitCode::bad_fixture, ExitCode::failed, ExitCode::unproven_skip,
                                ExitCode::stale_waiver, ExitCode::incomplete, ExitCode::nothing_selected, ExitCode::usage}) {
      if (seen_.count(code) != 0) return code;
    }
    return ExitCode::passed;
  }
  std::vector<ExitCode> all() const { return {seen_.begin(), seen_.end()}; }

 private:
  std::set<ExitCode> seen_;
};

inline const char* meaning(ExitCode code) {
  switch (code) {
    case ExitCode::passed: return "passed";
    case ExitCode::failed: return "failed";
    case ExitCode::usage: return "wrong usage";
    case ExitCode::bad_fixture: return "a fixture is damaged or inconsistent";
    case ExitCode::nothing_selected: return "nothing selected";
    case ExitCode::incomplete: return "incomplete";
    case ExitCode::unproven_skip: return "a skip without proof";
    case ExitCode::stale_waiver: return "a waiver is out of date";
    case ExitCode::machine_failed: return "the machine failed";
  }
  return "unknown";
}

}  // namespace assay::conformance
