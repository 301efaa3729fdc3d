#pragma once
// Cases in parallel: one context per thread for built-in backends; one after another for others, whose contract promises no
// more. Contexts stay open from one call of judge_in_parallel to the next.

#include <cstdint>
#include <functional>
#include <memory>

#include "conformance/backends/backend_handle.h"
#include "conformance/report/report.h"
#include "conformance/suites/backend_choice.h"

namespace assay::conformance {

// The backend that is judged, and the one whose answers are expected, or null: BackendChoice::expect_by.
struct Judged {
  Backend& backend;
  Backend* expecting = nullptr;
  // Another try in a process of its own is still possible: a fault that may come from another case is thrown.
  bool may_try_again = false;
  std::size_t device = 0;  // of BackendChoice::devices
  bool is_given_up() const { return backend.is_given_up() || (expecting != nullptr && expecting->is_given_up()); }
  // See Backend::settle.
  void settle() const;
};

// The judgement of a case that ended by a fault: verdict, and a text headed by options.title. Throws, for judge_in_parallel, where
// the case is to be judged alone first.
Judgement judgement_of(const BackendFault& fault, const Judged& judged, const JudgeOptions& options);

// The same for a call of the harness itself that failed: memory, copies, streams.
Judgement judgement_of(const BackendError& error, const JudgeOptions& options);

// Calls judge_one(index, judged), which gives the verdict, for every index below `count`, unless the run is interrupted.
// `one_at_a_time`: cases so large that each fills memory and keeps every processor busy by itself.
//
// A process that ends may have served other cases before or at the same time. The case is then judged again, alone in a
// process of its own, and so is every other case that it was serving: the one at fault is named, and if none is, all
// are. A context that is given up is replaced by one in a new process. Where none can be opened any more, or one case after
// another does not finish, `left` is called for the rest, with the judgement to report.
//
// Of several devices each has a process of its own, and takes the next case once it is free. Where one cannot be used any more, the
// others take its cases.
void judge_in_parallel(const BackendChoice& choice, std::int64_t count,
                       const std::function<Verdict(std::int64_t, Judged)>& judge_one,
                       const std::function<void(std::int64_t, Judgement)>& left, bool one_at_a_time = false);

// Whether cases are judged in parallel, one context per thread.
bool judges_side_by_side(const BackendChoice& choice);

// An open backend of `choice`, on one of its devices if it has any, for judge_in_parallel to use.
void keep_open(const BackendChoice& choice, std::unique_ptr<Backend> backend, std::size_t device = 0);
// Closes every context that is still open. Findings about backends that belong to no case become cases of `report`, of the
// suite "backend": a process that ended between two cases, a close() that fails.
void close_backends(Report& report);
// The case "backend/open", for a library that cannot be opened.
CaseReport report_of_open(const BackendFault& fault);

}  // namespace assay::conformance
