#include "conformance/judge/prepared_case.h"

#include <fmt/format.h>

#include "conformance/backends/stated_plan.h"
#include "conformance/judge/judge_parts.h"

namespace assay::conformance {

std::string key_of(const assay_numerics& stated) {
  return fmt::format("{}|{}|{}", plan_of(stated), stated.unit, stated.keeps_zero_sign);
}

PreparedCase::PreparedCase(std::vector<Case> steps, const JudgeOptions& options, const std::optional<assay_numerics>& stated)
    : steps_(std::move(steps)), specs_(wanted_specs(steps_.at(0), nullptr, options.wanted)) {
  if (!stated) return;
  key_ = key_of(*stated);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    expectations_.push_back(
        std::make_unique<Expectation>(steps_[i], nullptr, specs_, *stated, options, static_cast<std::int64_t>(i)));
  }
}

Expectation* PreparedCase::of(std::size_t step, const assay_numerics& stated) const {
  return step < expectations_.size() && key_of(stated) == key_ ? expectations_[step].get() : nullptr;
}

}  // namespace assay::conformance
