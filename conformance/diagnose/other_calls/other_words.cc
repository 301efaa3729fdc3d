// The weight of another call's result as evidence.

#include <exception>
#include <map>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_element.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/product.h"

namespace assay::conformance::diagnosis {
namespace {

std::int64_t inputs_of(const Request& request) {
  std::int64_t work = 0;
  for (const auto& [name, tensor] : request.in) work += tensor.elements();
  return work;
}

// Fewer elements of a product: each costs a sum.
constexpr std::size_t kMaxProducts = 48;

Weight weigh_product(const Request& request, const SampledOutput& sample, Effort& effort) {
  const bool quantizes = request.op() != "grouped_gemm";
  if (quantizes && !effort.spend(inputs_of(request))) return {};
  Weight weight;
  visit_product(request, [&](const GroupedGemmProblem& problem, void* d) {
    const ProductVariant right(view_of(problem, d), rows_of(problem), columns_of(problem));
    weight = weigh(thinned(sample, kMaxProducts, kMaxProducts / 2), [&](std::int64_t at) -> std::optional<std::uint64_t> {
      if (!effort.spend(right.work(at))) return std::nullopt;
      return right.word(at);
    });
  });
  return weight;
}

}  // namespace

Weight weigh_call(const Suspect& suspect, const OtherCall& call, const SampledOutput& sample, Effort& effort) {
  try {
    const std::string product = product_output(suspect.request.op());
    if (suspect.output == product) return weigh_product(call.request, sample, effort);
    Request request = call.request;
    request.out.clear();
    std::int64_t work = inputs_of(request);
    std::map<std::string, Tensor> all;  // some outputs are made together only
    for (const OutputSpec& spec : outputs_of(request)) {
      if (spec.name != product) all.emplace(spec.name, make_tensor(spec.type, spec.shape)), work += all.at(spec.name).elements();
    }
    const auto found = all.find(suspect.output);
    if (found == all.end() || bits_of(found->second.type) != bits_of(suspect.got.type)) return {};
    if (found->second.bytes.size() != suspect.got.bytes.size() || !effort.spend(work)) return {};
    for (auto& [name, tensor] : all) {
      request.out[name] = {tensor.type, tensor.shape, tensor.bytes.empty() ? nullptr : tensor.bytes.data(),
                           static_cast<std::int64_t>(tensor.bytes.size())};
    }
    answer(request, Layer::fast);
    const Elements words(found->second);
    return weigh(sample, [&](std::int64_t at) { return std::optional(words[at]); });
  } catch (const std::exception&) {
    return {};  // a call that the reference refuses explains nothing
  }
}

}  // namespace assay::conformance::diagnosis
