#include "conformance/diagnose/other_calls/diagnosis.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_element.h"

namespace assay::conformance {
namespace diagnosis {
namespace {

constexpr std::size_t kMaxElementsTried = 65536;          // looked at, wrong and right each
constexpr std::int64_t kMaxWork = std::int64_t{1} << 27;  // elements of other calls: below half a second
constexpr std::size_t kMaxLines = 2;

}  // namespace

void OtherCall::replace(const std::string& name, Tensor tensor) {
  Tensor& kept = storage.emplace_back(std::move(tensor));
  request.in[name] = {kept.type, kept.shape, kept.bytes.empty() ? nullptr : kept.bytes.data(),
                      static_cast<std::int64_t>(kept.bytes.size())};
}

Tensor tensor_of(const TensorView& view) {
  const auto* bytes = static_cast<const std::byte*>(view.data);
  return {view.type, view.shape, bytes == nullptr ? std::vector<std::byte>{} : std::vector<std::byte>(bytes, bytes + view.bytes)};
}

bool AcceptedHypotheses::add(const SampledOutput& sample, const Weight& weight, const std::string& text) {
  if (weight.accepted) {
    const std::string lines = share_text(sample, weight) + " " + text;
    if (weight.right_too) {
      full.push_back(lines);
    } else {
      others.push_back(lines + (weight.all ? ", which would change others too" : ""));
    }
  }
  return full.size() < kMaxLines;
}

}  // namespace diagnosis

namespace {

std::vector<std::string> explained(const Suspect& suspect, const diagnosis::SampledOutput& sample) {
  using namespace diagnosis;
  if (sample.wrong.size() < 2) return {};
  AcceptedHypotheses accepted;
  Effort effort(kMaxWork);
  const Try attempt = [&](OtherCall call) { return accepted.add(sample, weigh_call(suspect, call, sample, effort), call.text); };
  try {
    // The first family that explains everything gives the hint.
    const auto open = [&] { return accepted.full.empty(); };
    for (const auto family : {earlier_calls, calls_with_flushed_inputs, calls_with_other_options}) {
      if (open()) family(suspect, attempt);
    }
    for (const auto family : {try_quantize_rules, try_nvfp4_rules, try_update_rules, try_zero_scales}) {
      if (open()) family(suspect, sample, effort, accepted);
    }
    if (open()) calls_with_other_inputs(suspect, attempt);
    if (open()) try_product_ways(suspect, sample, accepted);
    if (open() && !sample.within_bounds) try_outcomes(suspect, sample, effort, accepted);
  } catch (const std::exception&) {  // the failure is then reported without a hint
  }
  std::vector<std::string>& lines = accepted.full.empty() ? accepted.others : accepted.full;
  lines.resize(std::min(lines.size(), kMaxLines));
  return lines;
}

}  // namespace

std::vector<std::string> explanations(const Suspect& suspect) {
  using namespace diagnosis;
  return explained(suspect, sample_output(suspect.got, suspect.want, suspect.written, kMaxElementsTried));
}

std::vector<std::string> explanations_within(const Suspect& suspect, std::span<const CertifiedBound> bounds) {
  using namespace diagnosis;
  Tensor middle = suspect.got;
  const auto width = static_cast<std::size_t>(bits_of(middle.type) / 8);
  for (std::size_t at = 0; at < bounds.size(); ++at) {
    const std::uint32_t code = code_of(middle.type, static_cast<float>(bounds[at].exact));
    std::memcpy(middle.bytes.data() + at * width, &code, width);
  }
  const Suspect centred{suspect.request, suspect.output, suspect.got, middle, suspect.written, suspect.earlier};
  return explained(centred, sample_bounded_output(suspect.got, middle, suspect.written, bounds, kMaxElementsTried));
}

}  // namespace assay::conformance
