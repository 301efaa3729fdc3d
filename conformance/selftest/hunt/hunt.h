#pragma once
// `assay selftest` without its command line: the mutants that are meant, their outcomes, and earlier records.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/selftest/hunt/kill_matrix.h"
#include "conformance/selftest/hunt/mutant_library.h"
#include "conformance/selftest/hunt/planting.h"
#include "conformance/selftest/hunt/proofs.h"
#include "conformance/selftest/hunt/recording.h"

namespace assay::conformance {

// Which mutants are meant. Empty members: all.
struct MutantSelection {
  std::vector<std::string> words;         // parts of "ID FAMILY SAYS", or patterns with *; one of them has to match
  std::vector<std::string> families;      // one of them
  std::vector<KillMatrix> not_killed_in;  // of any profiles: together they have fewer killing cases of it than `killers`
  std::int64_t killers = 1;
  const Proofs* not_proved_in = nullptr;
  std::int64_t shard = 0, shards = 1;
  std::string text() const;  // as KillMatrix::selected
};
std::vector<const Mutant*> selected_mutants(const std::vector<Mutant>& all, const MutantSelection& selection);

// The rows of `mutants`, and the cases of `recording` that kill them.
KillMatrix matrix_of(const MutantLibrary& library, const Recording& recording, const std::vector<const Mutant*>& mutants,
                     const std::vector<Planted>& planted);

// A record of kills that is made again.
struct Record {
  std::map<std::string, std::string> killers;  // of each mutant, the case to begin with
  std::map<std::string, bool> killed;          // every mutant of the record
};
Record record_of(const KillMatrix& matrix);

}  // namespace assay::conformance
