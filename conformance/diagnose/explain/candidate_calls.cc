// The same call with an option, an input or an earlier call's input in place of its own.

#include <exception>
#include <memory>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_element.h"
#include "conformance/ops/product.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::OtherCall;

Words product_words(const Request& request, std::span<const std::int64_t> elements) {
  Words words(elements.size());
  visit_product(request, [&](const GroupedGemmProblem& problem, void* d) {
    const diagnosis::ProductVariant variant(view_of(problem, d), diagnosis::rows_of(problem), diagnosis::columns_of(problem));
    for (std::size_t i = 0; i < elements.size(); ++i) words[i] = variant.word(elements[i]);
  });
  return words;
}

}  // namespace

void propose_calls(const Failure& failure, const Propose& propose) {
  const FailedOutput* const product = failure.product();
  const FailedOutput& first = product != nullptr ? *product : failure.outputs().front();
  const Suspect suspect{failure.request(), first.name, first.got, first.want, {}, failure.earlier()};
  int cost = 0;
  bool options = false;
  const diagnosis::Try attempt = [&](OtherCall call) {
    Candidate candidate;
    candidate.text = call.text;
    // Other splits move every row: what holds in a part of the output has a nearer cause.
    candidate.cost = cost + (call.text.starts_with("with splits ") ? 12 : 0);
    const auto kept = std::make_shared<OtherCall>(std::move(call));
    const bool sums = product != nullptr && bits_of(product->want.type) >= 16;
    if (sums) candidate.some = [kept](std::span<const std::int64_t> elements) { return product_words(kept->request, elements); };
    candidate.all = [kept, &failure](Outputs& outputs) {
      for (auto& [name, tensor] : failure.answered(kept->request)) outputs[name].bytes = std::move(tensor.bytes);
      return true;
    };
    candidate.call = kept;
    candidate.is_option = options;
    propose(std::move(candidate));
    return true;
  };
  const auto family = [&](auto calls, int of) {
    cost = of;
    try {
      calls(suspect, attempt);
    } catch (const std::exception&) {  // a call that cannot be changed in this way
    }
  };
  family(diagnosis::earlier_calls, 10);
  options = true;
  family(diagnosis::calls_with_other_options, 12);
  options = false;
  family(diagnosis::calls_with_flushed_inputs, 12);
  family(diagnosis::calls_with_other_inputs, 14);
}

}  // namespace assay::conformance::explaining
