#pragma once
// Internal to the diagnosis of a wrong output: the failed call, and the hypotheses that are tried on it.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "conformance/diagnose/other_calls/diagnosis.h"
#include "conformance/diagnose/other_calls/sampled_output.h"

namespace assay::conformance::diagnosis {

// Work that may still be done, in elements of tensors and products of sums. The same on every machine.
class Effort {
 public:
  explicit Effort(std::int64_t most) : left_(most) {}
  bool spend(std::int64_t work) {
    if (work > left_) return false;
    left_ -= work;
    return true;
  }

 private:
  std::int64_t left_;
};

// The same call with one change, which `text` names: "with eps=0". Owns what the request points to.
struct OtherCall {
  explicit OtherCall(const Request& request) : request(request) {}
  OtherCall(OtherCall&&) = default;
  // Replaces the contents of an input.
  void replace(const std::string& name, Tensor tensor);

  Request request;
  std::string text;
  std::deque<Tensor> storage;
};

// Receives hypotheses one after another; false: enough.
using Try = std::function<bool(OtherCall)>;

// Each family of other calls, the most plausible first.
void earlier_calls(const Suspect& suspect, const Try& attempt);              // earlier_calls.cc
void calls_with_other_options(const Suspect& suspect, const Try& attempt);   // option_changes.cc
void calls_with_other_inputs(const Suspect& suspect, const Try& attempt);    // input_calls.cc
void calls_with_flushed_inputs(const Suspect& suspect, const Try& attempt);  // input_changes.cc

// The weight of another call's result as evidence. Zero if the reference refuses the call, or its output has another size.
Weight weigh_call(const Suspect& suspect, const OtherCall& call, const SampledOutput& sample, Effort& effort);  // other_words.cc

// A copy of an input.
Tensor tensor_of(const TensorView& view);

// Accepted hypotheses by their texts; those that right elements follow too are kept apart.
struct AcceptedHypotheses {
  std::vector<std::string> full, others;
  // True while more is worth trying.
  bool add(const SampledOutput& sample, const Weight& weight, const std::string& text);
};

// Hypotheses that are not other calls: changed elements, a product computed another variant, a quantization or an update of scales
// by other rules. Each is in the file that its line names.
using TryFamily = void(const Suspect& suspect, const SampledOutput& sample, Effort& effort, AcceptedHypotheses& accepted);
TryFamily try_nvfp4_rules;     // nvfp4_rules.cc
TryFamily try_zero_scales;     // input_changes.cc
TryFamily try_outcomes;        // outcome_changes.cc
TryFamily try_quantize_rules;  // quantize_hypotheses.cc
TryFamily try_update_rules;    // update_hypotheses.cc
void try_product_ways(const Suspect& suspect, const SampledOutput& sample,
                      AcceptedHypotheses& accepted);  // product_hypotheses.cc

// The texts of the tables' rows, for the test of the page that lists them.
std::vector<std::string> input_change_texts();
std::vector<std::string> outcome_texts();
std::vector<std::string> update_rule_texts();

}  // namespace assay::conformance::diagnosis
