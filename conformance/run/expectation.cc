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

// A matrix must have the extents of the schema, or a transposed one would pass for it; a flat tensor only its size.
bool same_shape(const std::vector<std::int64_t>& given, const std::vector<std::int64_t>& wanted) {
  return given.size() != 2 || wanted.size() != 2 || given == wanted;
}

// What a fixture expects must be something that the op can give. Errors: InvalidArgument naming the output.
void check_given(const golden::Case& problem, const OutputSpec& spec, const golden::Tensor& given, std::size_t bytes) {
  if (given.type != spec.type || given.bytes.size() != bytes || !same_shape(given.shape, spec.shape)) {
    std::string wanted = "[";
    for (std::size_t i = 0; i < spec.shape.size(); ++i) wanted.append(i == 0 ? "" : ",").append(std::to_string(spec.shape[i]));
    throw InvalidArgument("out/" + spec.name, describe(TensorView{given.type, given.shape, nullptr, 0}),
                          wanted + "] " + std::string(assay::name_of(spec.type)));
  }
  if (text_attribute(problem, "scale_layout") != "swizzled" || spec.name.find("scale_inv") == std::string::npos) return;
  const golden::Tensor shaped{spec.type, spec.shape, given.bytes};
  const Difference padding = compare(problem, spec.name, shaped, shaped);  // only padding can differ from what it must be
  if (padding) throw InvalidArgument("out/" + spec.name, padding.got_text + " at " + padding.first_place, "0 in swizzled padding");
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
    if (fixture != nullptr) check_given(problem_, spec, fixture->out.at(spec.name), output.written.size());
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

std::string Expectation::disagreement(const std::map<std::string, std::vector<std::byte>>& first,
                                      const std::map<std::string, std::vector<std::byte>>& second) const {
  std::string text;
  for (const Output& output : outputs_) {
    const std::vector<std::byte>&one = first.at(output.spec.name), &other = second.at(output.spec.name);
    std::int64_t apart = 0, at = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (output.written[i] == 0 || one[i] == other[i]) continue;
      if (apart++ == 0) at = static_cast<std::int64_t>(i);
    }
    if (apart > 0 && ground_ == Ground::bound) {
      text += fmt::format("  output  {}: {} bytes differ from run to run, the first at byte {}: the result depends on what memory held\n",
                          output.spec.name, apart, at);
    }
  }
  return text;
}

}  // namespace assay::conformance
