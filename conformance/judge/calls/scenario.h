#pragma once
// Judging a scenario: every output of every call in every replay.

#include "conformance/cases/case_line.h"
#include "conformance/judge/judge.h"

namespace assay::conformance {

// Captures the graphs of the scenario once and replays them as often as it says, and finally with the first inputs again. In
// every replay each call's outputs are poisoned anew and compared as judge() compares them; then the calls are made one by
// one on the inputs of each replay and must give the same bits as that replay did. Nothing may have been carried out under
// capture, nothing but outputs and workspaces may be written, and what does not finish in time is Verdict::unfinished.
//
// A call that the backend declares absent makes the scenario not run, if judge() finds the declaration proved.
// options.wanted is ignored: every output is compared. Errors: as judge().
Judgement judge_scenario(Backend& backend, const CaseLine& line, const JudgeOptions& options);

}  // namespace assay::conformance
