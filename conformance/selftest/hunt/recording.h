#pragma once
// Which mutants can make a difference in which cases: each case is judged once without a mutant, while the library notes them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "conformance/judge/prepared_case.h"
#include "conformance/selftest/hunt/mutant_library.h"
#include "conformance/suites/backend_choice.h"
#include "conformance/support/forked.h"

namespace assay::conformance {

struct RecordedCase {
  CaseLine line;
  std::string text;
  double work = 0;     // relative cost, from the line alone
  double seconds = 0;  // processor time with recording, which is slower than without
  // Whether mutants may be tried on it: it passes without one. Otherwise why not, and whether that is a fault.
  bool passes = false, is_fault = false;
  std::string why_not = {};
  assay_numerics stated{};  // without a mutant
  // Inputs and expected outputs, where they are computed before mutants are tried.
  std::unique_ptr<PreparedCase> prepared = {};
};

class Recording {
 public:
  Recording(std::vector<CaseLine> lines, std::int32_t mutants);
  std::vector<RecordedCase> cases;  // in the order in which mutants are tried on them
  bool can_differ(std::size_t of, const Mutant& mutant) const;
  // The mutant is tried on this case, whether it makes a difference there or not.
  void try_on(std::size_t of, const Mutant& mutant);
  // `effects`: how often each number made a difference in the case.
  void note(std::size_t of, const std::vector<std::uint8_t>& effects, const std::vector<const Mutant*>& mutants);

  // Orders the cases: the cheapest first, those of about the same cost as `seed` says. Before anything is noted.
  void order(std::uint64_t seed);

 private:
  std::size_t words_;
  ForkedArray<std::uint64_t> effects_;
};

// The cost of judging a case, replays included, where a small one costs about 1.
double relative_cost(const CaseLine& line);

// How the library's cases are judged: as `repro` judges them, without a search for causes.
BackendChoice choice_of(const MutantLibrary& library);

// Judges every case without a mutant, and notes which of `mutants` would have made a difference: the fewer, the sooner. False:
// interrupted. Errors: ProcessError, BackendError.
bool record_cases(const MutantLibrary& library, Recording& recording, const std::vector<const Mutant*>& mutants, int jobs,
                  const std::function<void(std::int64_t)>& progress);

// Prepares the first cases, as far as memory allows: processes that are made later share them.
void prepare_cases(const MutantLibrary& library, Recording& recording);

}  // namespace assay::conformance
