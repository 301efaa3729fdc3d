#pragma once
// The fingerprint of a failure: the same in every run that fails alike, another one when the case fails in another way.

#include <string>

#include "conformance/judge/judge.h"

namespace assay::conformance {

// 16 hexadecimal digits, from the verdict and, of each finding, its kind, output, counts, first wrong element, the digest of all wrong
// values, or its text; not from times, hints, names of files and addresses. Empty for a pass and for an absence.
std::string fingerprint_of(const Judgement& judgement);

}  // namespace assay::conformance
