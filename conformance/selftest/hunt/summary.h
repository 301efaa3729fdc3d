#pragma once
// The outcomes of the mutants: as text, and as one outcome of the run.

#include <string>
#include <vector>

#include "conformance/report/exit_code.h"
#include "conformance/selftest/hunt/kill_matrix.h"
#include "conformance/selftest/hunt/mutant_library.h"
#include "conformance/selftest/hunt/proofs.h"

namespace assay::conformance {

enum class Fate {
  killed,
  proved,        // not killed, with a proof that it is no fault
  survived,      // no case that it differs in killed it
  not_reached,   // it differs in no case
  passed,        // benign, and every case passed
  failed,        // benign, and a case did not pass
  contradicted,  // killed, in spite of a proof
};
const char* name_of(Fate fate);

struct FateCounts {
  std::int64_t mutants = 0, killed = 0, killed_once = 0, proved = 0, survived = 0, not_reached = 0;
};

class MutantSummary {
 public:
  // `mutants`: those of the rows of `matrix`, in the same order.
  MutantSummary(const KillMatrix& matrix, std::vector<const Mutant*> mutants, const Proofs& proofs);

  Fate fate(std::size_t row) const { return fates_[row]; }
  // Whether a mutant hangs on a single case: every case that it differs in was judged, and one killed it.
  bool is_killed_once(std::size_t row) const;
  FateCounts counts(const std::string& family) const;  // of its mutants that are not benign; empty: of all families
  std::int64_t count(Fate fate) const;
  void add_to(Outcome& outcome) const;

  // The table by family.
  std::string table() const;
  // Survivors, contradicted proofs and benign variations that failed, at most `show` of each. `library`: for commands to be pasted.
  std::string findings(int show, const std::string& library) const;

 private:
  std::string finding(std::size_t row, const std::string& library) const;

  const KillMatrix& matrix_;
  const std::vector<const Mutant*> mutants_;
  const Proofs& proofs_;
  std::vector<Fate> fates_;
};

}  // namespace assay::conformance
