// Expected outputs as digests: computed for others, and taken from them.

#include <fmt/format.h>

#include <algorithm>

#include "conformance/judge/expectation.h"
#include "conformance/judge/memory/poisons.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

std::size_t number_of_poison(std::uint8_t poison) { return poison == kPoisons[0] ? 0 : 1; }

bool is_poison(std::uint8_t poison) { return poison == kPoisons[0] || poison == kPoisons[1]; }

}  // namespace

std::string_view name_of(Predicted predicted) {
  switch (predicted) {
    case Predicted::not_asked: return "";
    case Predicted::by_digest: return "by digest";
    case Predicted::computed_differs: return "computed: the outputs differ from the prediction";
    case Predicted::computed_bound: return "computed: no plan is stated, and bounds have no digest";
    case Predicted::computed_plan: return "computed: predicted under other plans only";
    case Predicted::computed_case: return "computed: the case is not predicted";
    case Predicted::computed_wrong: return "computed: the prediction is wrong";
  }
  return "";
}

PredictedCall Expectation::predicted_call() const {
  PredictedCall call;
  call.step = step_;
  call.linked = linked_;
  call.order_free = basis_ == CheckBasis::order_free_bits;
  const auto text = [&](const char* name) {
    const auto found = attributes_.find(name);
    const auto* value = found == attributes_.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value == nullptr ? std::string() : *value;
  };
  const bool has_product =
      std::any_of(specs_.begin(), specs_.end(), [&](const OutputSpec& spec) { return spec.name == product_; });
  if (has_product && !call.order_free) {
    const AccumulationPlan* const plan = find_accumulation_plan(text("plan"));
    call.plan = plan == nullptr ? text("plan") : plan_line(*plan);
  }
  const std::string said = text("zero_sign");
  const bool is_free = std::any_of(specs_.begin(), specs_.end(), [&](const OutputSpec& spec) { return is_zero_sign_free(spec); });
  call.zero_sign = is_free ? "free" : said.empty() || said == "free" ? "kept" : said;
  return call;
}

// Whether the answer is not computed now.
bool Expectation::find_prediction(const JudgeOptions& options) {
  if (options.predictions == nullptr) return false;
  predictions_ = options.predictions;
  if (basis_ == CheckBasis::bound) {
    predicted_ = Predicted::computed_bound;
    return false;
  }
  const auto found = predictions_->calls.find(predicted_call());
  const bool whole = found != predictions_->calls.end() && std::all_of(specs_.begin(), specs_.end(), [&](const OutputSpec& spec) {
                       return found->second.digests.count(spec.name) != 0;
                     });
  if (!whole) {
    predicted_ = predictions_->calls.empty() ? Predicted::computed_case : Predicted::computed_plan;
    return predictions_->only;
  }
  predicted_ = Predicted::by_digest;
  prediction_ = &found->second;
  exact_ = prediction_->elements;
  return true;
}

bool Expectation::is_left_out() const {
  return predictions_ != nullptr && predictions_->only && !is_answered_ && prediction_ == nullptr;
}

DigestRules Expectation::digest_rules(const OutputSpec& spec, std::size_t bytes) const {
  DigestRules rules{spec.type, is_zero_sign_free(spec)};
  if (spec.rows_follow_splits && !spec.shape.empty() && spec.shape[0] > 0) {
    rules.free_rows = free_rows();
    rules.row_bytes = std::max<std::size_t>(bytes / static_cast<std::size_t>(spec.shape[0]), 1);
  }
  return rules;
}

bool Expectation::are_predicted(const Outputs& outputs, std::uint8_t poison) const {
  if (!is_poison(poison)) return false;
  return std::all_of(specs_.begin(), specs_.end(), [&](const OutputSpec& spec) {
    const std::vector<std::byte>& got = outputs.at(spec.name);
    return output_digest(got, digest_rules(spec, got.size())) == prediction_->digests.at(spec.name)[number_of_poison(poison)];
  });
}

// False: digests say that all is right. Otherwise the answer is there.
bool Expectation::needs_comparison(const Outputs& outputs, std::uint8_t poison) const {
  if (is_answered_) return true;
  if (prediction_ != nullptr && are_predicted(outputs, poison)) return false;
  answer_later();
  if (prediction_ == nullptr) return true;
  predicted_ = Predicted::computed_differs;
  const PredictedOutputs right = predicted_outputs();
  std::string wrong;
  for (const OutputSpec& spec : specs_) {
    if (right.digests.at(spec.name) != prediction_->digests.at(spec.name)) wrong += (wrong.empty() ? "" : ", ") + spec.name;
  }
  if (right.elements != prediction_->elements)
    wrong += fmt::format("{}{} elements, not {}", wrong.empty() ? "" : ", ", right.elements, prediction_->elements);
  if (wrong.empty()) return true;
  predicted_ = Predicted::computed_wrong;
  if (predictions_->on_wrong) predictions_->on_wrong(*prediction_, wrong);
  return true;
}

void Expectation::answer_later() const {
  JudgeOptions options;
  options.layer = layer_;
  exact_ = 0;
  answer_all(nullptr, false, nullptr, options);
}

Outputs Expectation::expected_outputs(std::uint8_t poison) const {
  if (!is_answered_) answer_later();
  Outputs made;
  for (const Output& output : outputs_) {
    std::vector<std::byte>& bytes = made[output.spec.name] = output.want;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!output.is_written(i)) bytes[i] = static_cast<std::byte>(poison);
    }
  }
  return made;
}

PredictedOutputs Expectation::predicted_outputs() const {
  PredictedOutputs made;
  for (std::size_t p = 0; p < std::size(kPoisons); ++p) {
    const Outputs outputs = expected_outputs(kPoisons[p]);
    for (const Output& output : outputs_) {
      const std::vector<std::byte>& bytes = outputs.at(output.spec.name);
      made.digests[output.spec.name][p] = output_digest(bytes, digest_rules(output.spec, bytes.size()));
    }
  }
  made.elements = exact_;
  return made;
}

}  // namespace assay::conformance
