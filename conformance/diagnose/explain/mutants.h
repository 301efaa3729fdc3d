#pragma once
// The mutants of the library of mutants (conformance/selftest) as causes: the reference with one operator, index or condition
// wrong, and calls that are carried out wrongly. Each call is made in a process of its own, which a mutant may bring down.

#include <functional>
#include <string>

#include "conformance/diagnose/explain/candidate.h"

namespace assay::conformance::explaining {

// Proposes, with its outputs, each mutant that makes a difference to this call, until `ended` is true. Returns how many are left
// out then. Errors: InvalidArgument where the file is no library of mutants of this build.
std::int64_t propose_mutants(const Failure& failure, const std::string& library, const std::function<bool()>& ended,
                             const Propose& propose);

}  // namespace assay::conformance::explaining
