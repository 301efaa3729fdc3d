#pragma once
// Wrong calls, made from a right one.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance {

// A call whose parts may be changed: copies of everything but tensor data. Parts that are added live as long as this.
struct CallParts {
  explicit CallParts(const assay_call& of);
  // The call with these parts; valid until one of them changes.
  const assay_call& call();

  assay_call base;
  std::vector<assay_parameter> parameters;
  std::vector<assay_tensor> inputs, outputs;
};

struct WrongCall {
  std::string what;                        // "an unknown parameter 'no_such_parameter'"
  std::function<void(CallParts&)> change;  // makes a right call of this op wrong
  // An op may not need the part: the call counts as wrong only if the reference refuses it.
  bool reference_decides = false;
};

// Every way to make this call wrong. Reads names and shapes, no data. `algorithms`: those that the backend lists.
std::vector<WrongCall> wrong_calls(const assay_call& right, const std::vector<std::int64_t>& algorithms = {});

}  // namespace assay::conformance
