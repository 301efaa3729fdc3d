#pragma once
// Expected outputs of a case as digests, computed before and elsewhere (`assay predict`).

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace assay::conformance {

// How the expected outputs of a case were had, in a run that has predictions. Of several calls of a case the last in this order counts.
enum class Predicted {
  not_asked,  // the run has no predictions, or the case is of a fixture
  by_digest,
  computed_differs,  // digests differ, and the outputs were compared one element after another
  computed_bound,    // no plan is stated: bounds have no digest
  computed_plan,     // the case is predicted, but under other plans
  computed_case,     // the case is not predicted
  computed_wrong,    // the prediction is wrong
};
// "by digest", "computed: no plan is stated"; empty for not_asked.
std::string_view name_of(Predicted predicted);

// Everything beside the case line that the expected outputs of one call depend on.
struct PredictedCall {
  std::int64_t step = 0;    // number of the replay; of a scenario, of the call among those of all replays
  bool order_free = false;  // any order of sums gives these bits: no plan
  std::string plan;         // as a line; empty: order_free, or there is no product
  std::string zero_sign;    // "kept", "positive", "free"
  std::string linked = "";  // of a scenario: digest of the inputs that other calls wrote; empty: there are none
  auto operator<=>(const PredictedCall&) const = default;
};

struct PredictedOutputs {
  std::map<std::string, std::array<std::string, 2>> digests;  // by output: over each of kPoisons
  std::int64_t elements = 0;                                  // that the op writes
  std::string place = "";                                     // "predictions.jsonl: line 17"
};

struct CasePredictions {
  std::map<PredictedCall, PredictedOutputs> calls;
  bool only = false;  // what could be predicted and is not is not judged
  // Called where the reference gives other outputs than a prediction. From any thread.
  std::function<void(const PredictedOutputs& wrong, const std::string& what)> on_wrong = {};
};

}  // namespace assay::conformance
