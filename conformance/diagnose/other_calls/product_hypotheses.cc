// The product computed in another way: every row of product_ways.h, tested on a few dozen elements.

#include <algorithm>
#include <exception>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_ways.h"
#include "conformance/ops/product.h"

namespace assay::conformance::diagnosis {
namespace {

constexpr std::size_t kProductWords = 48;
constexpr std::int64_t kMaxProductTerms = std::int64_t{1} << 24;

}  // namespace

void try_product_ways(const Suspect& suspect, const SampledOutput& sample, AcceptedHypotheses& accepted) {
  if (suspect.output != product_output(suspect.request.op())) return;
  Effort effort(kMaxProductTerms);
  const SampledOutput few = thinned(sample, kProductWords, kProductWords / 2);
  visit_product(suspect.request, [&](const GroupedGemmProblem& problem, void* d) {
    const ProductVariant right(view_of(problem, d), rows_of(problem), columns_of(problem));
    if (right.view.groups.empty() || bits_of(right.view.d_type) < 16) return;  // of a D in FP8 too little of the sum is seen
    for (const auto family : {read_variants, finish_variants, sum_variants}) {
      if (family == sum_variants && sample.within_bounds) return;  // every order is right there
      for (const NamedVariant& named : family(right)) {
        ProductVariant variant(right);
        try {
          if (!named.apply(variant)) continue;
          const Weight weight = weigh(few, [&](std::int64_t at) -> std::optional<std::uint64_t> {
            if (!effort.spend(variant.work(at))) return std::nullopt;
            return variant.word(at);
          });
          if (!accepted.add(sample, weight, named.text)) return;
        } catch (const std::exception&) {  // no unit has such a step
        }
      }
      if (!accepted.full.empty()) return;
    }
  });
}

}  // namespace assay::conformance::diagnosis
