#include "conformance/run/expectation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "conformance/compare/compare.h"
#include "conformance/run/outside_bounds.h"
#include "reference/gemm/plan.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

// The reference writes into copies, so that the case stays as it was given.
golden::Case with_outputs(const golden::Case& problem, const std::vector<OutputSpec>& specs, std::byte fill) {
  golden::Case made = problem;
  made.out.clear();
  for (const OutputSpec& spec : specs) {
    golden::Tensor tensor = golden::make_tensor(spec.type, spec.shape);
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), fill);
    made.out.emplace(spec.name, std::move(tensor));
  }
  return made;
}

bool holds_codes(const OutputSpec& spec) { return spec.name == "rowwise_data" || spec.name == "columnwise_data"; }

std::string text_attribute(const golden::Case& problem, const char* name) {
  const auto found = problem.attributes.find(name);
  const auto* text = found == problem.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

}  // namespace

Expectation::Expectation(const golden::Case& problem, const golden::Case* fixture, const std::vector<OutputSpec>& specs,
                         const assay_numerics& stated, const JudgeOptions& options)
    : problem_(problem) {
  problem_.out.clear();
  const bool product = problem.op == "grouped_gemm";
  const std::string plan = stated.plan, unit = stated.unit;
  if (!unit.empty() && find_tensor_core_unit(unit) == nullptr) {
    statement_fault_ = fmt::format("the backend states the unit '{}', which is no row of the tensor-core table (assay list --units)", unit);
    return;
  }
  if (!plan.empty() && find_accumulation_plan(plan) == nullptr) {
    statement_fault_ = fmt::format("the backend states the plan '{}', which is not known (assay list --plans)", plan);
    return;
  }
  // The sign of an exact zero follows the backend's statement, unless the case itself says what it must be.
  std::string zero_sign = text_attribute(problem, "zero_sign");
  if (problem.op == "quantize" && zero_sign.empty() && stated.keeps_zero_sign == 0) {
    if (fixture == nullptr) problem_.attributes["zero_sign"] = std::string("positive");
    zero_sign = fixture == nullptr ? "positive" : "free";
  }
  if (zero_sign.empty() && stated.keeps_zero_sign == -1) zero_sign = "free";

  if (fixture == nullptr && product) {
    if (!plan.empty()) {
      problem_.attributes["plan"] = plan;
    } else {
      ground_ = options.order_free ? Ground::order_free_bits : Ground::bound;
    }
  }
  golden::Case shaped = with_outputs(problem_, specs, std::byte{0});
  std::map<std::string, std::vector<std::uint8_t>> written = written_bytes(Request::of(shaped));
  if (fixture == nullptr && ground_ == Ground::bound) bounds_ = bounds_of(Request::of(shaped));
  if (fixture == nullptr && ground_ != Ground::bound) answer(Request::of(shaped), options.layer);
  for (const OutputSpec& spec : specs) {
    Output output;
    output.spec = spec;
    output.want = fixture == nullptr ? shaped.out.at(spec.name).bytes : fixture->out.at(spec.name).bytes;
    output.written = std::move(written.at(spec.name));
    output.zero_sign_free = zero_sign == "free" && holds_codes(spec);
    const golden::Tensor* given = fixture == nullptr ? nullptr : &fixture->out.at(spec.name);
    if (given != nullptr && (given->type != spec.type || given->bytes.size() != output.written.size())) {
      std::string wanted = "[";
      for (std::size_t i = 0; i < spec.shape.size(); ++i) wanted.append(i == 0 ? "" : ",").append(std::to_string(spec.shape[i]));
      throw InvalidArgument("out/" + spec.name, describe(TensorView{given->type, given->shape, nullptr, 0}),
                            wanted + "] " + std::string(assay::name_of(spec.type)));
    }
    const std::int64_t width = std::max<std::int64_t>(1, bits_of(spec.type) / 8);
    for (std::size_t i = 0; i < output.written.size(); i += static_cast<std::size_t>(width)) words_ += output.written[i];
    outputs_.push_back(std::move(output));
  }
}

std::string Expectation::differences(const std::map<std::string, std::vector<std::byte>>& outputs, std::uint8_t poison) const {
  std::string text;
  for (const Output& output : outputs_) {
    const golden::Tensor got{output.spec.type, output.spec.shape, outputs.at(output.spec.name)};
    if (ground_ == Ground::bound) {
      text += outside_bounds_text(output.spec.name, got, output.written, poison, bounds_);
      continue;
    }
    golden::Tensor before = got;
    std::fill(before.bytes.begin(), before.bytes.end(), static_cast<std::byte>(poison));
    const golden::Tensor want{output.spec.type, output.spec.shape, output.want};
    const Difference difference =
        compare(problem_, output.spec.name, want, got, {output.zero_sign_free, &before, output.written});
    if (difference) text += difference_text(difference);
  }
  return text;
}

}  // namespace assay::conformance
