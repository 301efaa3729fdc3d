#pragma once
// Judging what a backend does with calls that are wrong.

#include "conformance/judge/judge.h"

namespace assay::conformance {

// The case as it is, and then once for each way to make its call wrong (wrong_calls.h): an unknown parameter, input, output, op
// or algorithm, missing ones, ones given twice, sizes, types and addresses that do not fit, memory that tensors share. Each must be
// refused with the status that backend.h states for it and with a one-line reason that is not the same for all of them, memory must stay as it is, and the right call after it must give the
// right bits (of tensors: after the first fault of each kind). Where the backend captures, all of them are made again under one capture, and refused there, before the right call
// is captured and launched. Where the backend has events, the right call is made with events around it too (events.h). Whether a
// part may be left out is the reference's decision. Errors: as judge().
Judgement judge_contract(Backend& backend, const Case& problem, const JudgeOptions& options);

}  // namespace assay::conformance
