#pragma once
// Wrong calls, made from a right one: every way that part 2 of backend.h names, for every part of the call.

#include <cstdint>
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

// Whether a call is wrong where that depends on the op: a part that is absent may be optional, another value may be right too.
enum class Decides {
  always_wrong,
  schema,     // where a look at types, shapes and attributes shows it: check_against_schema()
  reference,  // where the reference refuses it
};

// The status that backend.h states for it.
enum class Refusal { invalid_argument, not_supported, either };

struct WrongCall {
  std::string part;                        // "input x", "parameter N"; empty: the call as a whole
  std::string fault;                       // "of rank 5", in the same words for every part of its kind
  std::string what;                        // both: "input x of rank 5"
  std::function<void(CallParts&)> change;  // makes a right call of this op wrong
  Decides decides = Decides::always_wrong;
  Refusal refusal = Refusal::invalid_argument;
};

// Every way to make this call wrong. Reads names, addresses and shapes, no data. `algorithms`: those that the backend lists.
std::vector<WrongCall> wrong_calls(const assay_call& right, const std::vector<std::int64_t>& algorithms = {});

// Whether this call, made wrong, is wrong by its schema.
bool is_wrong_by_schema(const assay_call& right, const WrongCall& wrong);

// "'invalid argument'", "'invalid argument' or 'not supported'".
std::string text_of(Refusal refusal);
bool is_documented(Refusal refusal, assay_status status);

}  // namespace assay::conformance
