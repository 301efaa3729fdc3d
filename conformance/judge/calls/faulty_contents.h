#pragma once
// Judges how a backend reports contents that no call may have.

#include "conformance/judge/calls/content_faults.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

// The case as it is, then once with each of `faults` in place of its splits, eagerly and, where the backend captures, by launching
// the captured call. Each must be reported, as backend.h says (2.), by the call or by the wait behind it, with a reason of one line. Inputs, canaries and everything else but outputs and workspace
// must stay as they are, and the right call behind it must give the right bits: the fault is reported once. Faults that the
// reference takes are left out. Errors: as judge(); InvalidArgument if the reference accepts them all.
Judgement judge_faulty_contents(Backend& backend, const Case& problem, const std::vector<ContentFault>& faults,
                                const JudgeOptions& options);

}  // namespace assay::conformance
