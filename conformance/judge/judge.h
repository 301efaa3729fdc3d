#pragma once
// One case on one backend: prepare, call, check all memory that the call could have changed, compare, decide.
//
// Each case runs twice, with outputs, padding and workspace filled first with 0xFF bytes (NaN in every floating format)
// and then with 0xA5, in memory of which every byte is checked (case_memory.h). It passes when, in both runs,
//   - the call succeeds and finishes in time,
//   - every byte that the op writes is the expected one, and every byte that it leaves alone still holds the poison,
//   - no canary and no input byte has changed,
// and when neither supports(), numerics() nor workspace_bytes() has written to that memory. One small case in six is made
// again on a busy stream (late_stream.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/judge/finding.h"
#include "conformance/judge/kept_call.h"
#include "conformance/judge/predictions.h"
#include "conformance/ops/answer.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

enum class Verdict {
  passed,
  failed,
  flaky,           // failed, and passed when it was judged again: never a pass
  not_run,         // the backend declared the path absent, and proved it: the call returned "not supported" and wrote nothing
  unproven_skip,   // declared absent, but the call did something else
  unfinished,      // no result: time ran out, or the call could not be completed
  not_tried,       // not begun: too many cases before it, in a row, did not finish
  machine_failed,  // no device can be opened any more, out of memory on the harness side
};
std::string_view name_of(Verdict verdict);

// The basis of a pass: what was checked, never more.
enum class CheckBasis {
  bits,  // every byte predicted; for GEMM by the plan that the backend declared, or by its unit where a sum is one step
  order_free_bits,  // no plan stated, and the inputs leave no choice: every order of summation gives these bits
  bound,            // no plan stated: each element lies within its computed bound
};
std::string_view name_of(CheckBasis basis);

struct Judgement {
  Verdict verdict = Verdict::unfinished;
  CheckBasis basis = CheckBasis::bits;
  std::string text;                     // why it failed or was not run; empty for a pass. Several lines, the first a summary
  std::int64_t elements = 0;            // output elements compared: elements_exact + elements_bounded
  std::int64_t elements_exact = 0;      // of which only one value is right
  std::int64_t elements_bounded = 0;    // of which any value within a computed interval passes
  std::int64_t elements_unbounded = 0;  // not compared: an overflow depends on the order of sums
  double seconds = 0;                   // wall time, generation excluded
  std::vector<std::string> details;     // of a failure: a line for each wrong tile that other scales explain
  std::string plan;                     // accumulation plan that the backend stated; empty: none
  std::string unit;                     // row of the tensor-core table that it stated; empty: none
  std::vector<Finding> findings;        // the failure of `text`, as data
  std::string expected_by;              // backend whose answer was expected; empty: the reference's, or a fixture's
  std::string way;                      // how the case was judged if not as it requests, and why; else empty

  Predicted predicted = Predicted::not_asked;  // how the expected outputs were had

  // The call whose outputs are wrong, where JudgeOptions::keeps_got.
  std::shared_ptr<const KeptCall> kept = {};
};

// The judgement of a case that is not started.
Judgement not_tried();

// "bits", or "bits, expected by emulated".
std::string basis_text(const Judgement& judgement);

struct JudgeOptions {
  Layer layer = Layer::fast;         // whose answer is expected
  std::int64_t timeout_ms = 60'000;  // one call
  std::int64_t algorithm = -1;
  std::string reproduce;                             // command printed with a failure
  const std::vector<std::string>* wanted = nullptr;  // outputs to request; null: all that the op has
  bool order_free = false;                           // the inputs leave no choice: every order of summation gives the same bits
  bool unit_probes = false;        // D shows the unit (generate/unit_probes.h): the stated one must give these bits
  bool explains = true;            // search for the cause of a difference; false: report the difference alone
  bool keeps_got = false;          // keep the wrong outputs: Judgement::kept
  Backend* expected_by = nullptr;  // op grouped_gemm: whose answer is expected in place of the reference's; null: its own
  // Expected outputs as digests (`assay predict`); null: they are computed.
  std::shared_ptr<const CasePredictions> predictions = {};
  bool answers_later = false;  // an Expectation computes its answer once it is needed
  std::string setting;         // algorithm or axis under which the call is made, for the failure's text
  std::string title;           // heading of a failure: the case line, or file and case name
};

// `problem` has op, attributes and inputs. With `expected` (a fixture's case) its `out` is compared, under the rules of the
// fixture schema; otherwise the outputs are compared with the reference's answer.
// Throws InvalidArgument when the case itself is invalid, NotSupported when the reference cannot answer it, and
// BackendError when the backend's memory, copies or streams fail.
Judgement judge(Backend& backend, const Case& problem, const Case* expected, const JudgeOptions& options);

// A setting of the backend under which a case is judged again.
struct Setting {
  std::int64_t algorithm = -1;  // -1: the backend's own choice
  std::string axis, value;      // an axis and its value; empty: every axis at its default
  std::string text;             // "algorithm: id 66, tile 20, ...", "axis: workspace=0"; empty: neither
  std::string words() const;    // command-line words that choose it, with a leading blank
};
struct JudgedSetting {
  Setting setting;
  Judgement judgement;
};
// Handles a fault of the backend under one setting, so that the other settings are still judged.
struct Recovery {
  // The judgement of the fault, with the options of its setting. May throw, which ends the case.
  std::function<Judgement(const BackendFault& fault, const JudgeOptions& options)> verdict;
  // A backend that replaces one that cannot be used any more, or null.
  std::function<Backend*()> restart;
};

// Judges the case with the backend's own choice, then (`all_algorithms`) with each algorithm that the backend lists, then
// with each of `axes` (NAME, VALUE). Expected outputs are computed once for each stated plan. Other axes are left as
// they are, and those of `axes` end at their defaults. A backend that cannot be used any more is replaced by
// `recovery`; without one, and after three settings that did not finish, the rest is not tried. Faults of listing the algorithms
// come last. Errors: as judge(); without `recovery`, BackendFault.
std::vector<JudgedSetting> judge_settings(Backend& backend, const Case& problem, bool all_algorithms,
                                          const std::vector<std::pair<std::string, std::string>>& axes,
                                          const JudgeOptions& options, const Recovery* recovery = nullptr);

// Graph replay: captures the call on the inputs of steps[0], then replays it once for each step, in order, with the inputs
// in device memory changed to that step's and the outputs poisoned again; finally the first step once more. Every replay is
// compared with the reference's answer for its own inputs. Every second step is made eagerly too, and launches alternate between
// the capture's stream and another one. All steps are the same call: attributes, types and shapes.
// For a backend without capture every step is made eagerly, with the inputs changed in place, and `way` says so.
Judgement judge_replay(Backend& backend, std::vector<Case> steps, const JudgeOptions& options);

}  // namespace assay::conformance
