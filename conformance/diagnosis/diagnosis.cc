#include "conformance/diagnosis/diagnosis.h"

#include <algorithm>
#include <exception>

#include "conformance/diagnosis/hypothesis.h"

namespace assay::conformance {
namespace diagnosis {
namespace {

constexpr std::size_t kMostWords = 65536;                  // looked at, wrong and right each
constexpr std::int64_t kMostWork = std::int64_t{1} << 27;  // elements of other calls: below half a second
constexpr std::size_t kMostTold = 2;

}  // namespace

void OtherCall::replace(const std::string& name, golden::Tensor tensor) {
  golden::Tensor& kept = storage.emplace_back(std::move(tensor));
  request.in[name] = {kept.type, kept.shape, kept.bytes.empty() ? nullptr : kept.bytes.data(),
                      static_cast<std::int64_t>(kept.bytes.size())};
}

golden::Tensor tensor_of(const TensorView& view) {
  const auto* bytes = static_cast<const std::byte*>(view.data);
  return {view.type, view.shape, bytes == nullptr ? std::vector<std::byte>{} : std::vector<std::byte>(bytes, bytes + view.bytes)};
}

bool Beliefs::add(const Evidence& evidence, const Weight& weight, const std::string& text) {
  if (weight.believed) {
    const std::string told = share_text(evidence, weight) + " " + text;
    if (weight.right_too) {
      full.push_back(told);
    } else {
      others.push_back(told + (weight.all ? ", which would change others too" : ""));
    }
  }
  return full.size() < kMostTold;
}

}  // namespace diagnosis

std::vector<std::string> explanations(const Suspect& suspect) {
  using namespace diagnosis;
  const Evidence evidence = evidence_of(suspect.got, suspect.want, suspect.written, kMostWords);
  if (evidence.wrong.size() < 2) return {};
  Beliefs beliefs;
  Effort effort(kMostWork);
  const Try attempt = [&](OtherCall call) {
    return beliefs.add(evidence, weigh_call(suspect, call, evidence, effort), call.text);
  };
  try {
    // The first family that explains everything has the word.
    const auto open = [&] { return beliefs.full.empty(); };
    for (const auto family : {earlier_calls, calls_with_other_options}) {
      if (open()) family(suspect, attempt);
    }
    for (const auto family : {try_quantize_rules, try_update_rules}) {
      if (open()) family(suspect, evidence, effort, beliefs);
    }
    if (open()) calls_with_other_inputs(suspect, attempt);
    if (open()) try_product_ways(suspect, evidence, beliefs);
    if (open()) try_outcomes(suspect, evidence, effort, beliefs);
  } catch (const std::exception&) {  // a hint that cannot be had is none
  }
  std::vector<std::string>& told = beliefs.full.empty() ? beliefs.others : beliefs.full;
  told.resize(std::min(told.size(), kMostTold));
  return told;
}

}  // namespace assay::conformance
