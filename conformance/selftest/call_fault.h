#pragma once
// Faults of whole calls: what a library does wrong with its options, inputs, outputs, plans and memory. Those of the lists are made
// from the tables of ops, plans and units; the catalogued ones are named after rows of conformance/cases/faults.md.

#include <functional>
#include <string>
#include <vector>

#include "conformance/backend.h"
#include "conformance/ops/request.h"

namespace assay::conformance {

struct CallFault {
  std::string id, family, says;
  bool benign = false;
  // Whether a call is carried out otherwise than without the fault, as far as that is known beforehand.
  std::function<bool(const Request&)> applies;
  // Carries the call out, with the fault.
  std::function<void(Request&)> perform;
  // Before numerics are stated: changes to the call, or to what is stated. Both may be empty.
  std::function<void(Request&)> restate = {};
  std::function<void(assay_numerics&)> state = {};
  // While the call is only asked about, or captured. May be empty.
  std::function<void(Request&)> question = {};
};

const std::vector<CallFault>& call_faults();

// A call is about to be carried out, or with `dry` is only asked about or captured.
void note_call(bool dry);
// Calls that were carried out since the last dry one, the present one included.
int calls_since_question();
// Questions that followed a call so far: what a mutant keeps from call to call is forgotten when this changes, so that cases
// which are judged one after another do not depend on each other.
int cases_so_far();
// Questions since the last call.
int questions_in_a_row();

}  // namespace assay::conformance
