#include "conformance/diagnose/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <set>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/explain/region.h"
#include "conformance/diagnose/other_calls/product_element.h"
#include "conformance/ops/product.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace explaining {
namespace {

constexpr std::size_t kSample = 48;     // wrong words that a product's candidate is first tried on
constexpr std::size_t kFinalists = 24;  // candidates of products that are computed whole
constexpr int kEnoughBits = 20;         // of evidence for one of some thousand causes

// What a candidate gives for one output: where it changes a word, and what the call gave there.
struct Effect {
  std::vector<std::int64_t> right;   // it changes the word to what the call gave
  std::vector<std::int64_t> spoilt;  // it changes the word to something else than the call gave
  std::int64_t left = 0;             // wrong words that it does not change
};

Effect effect_of(const FailedOutput& output, const Tensor& predicted) {
  Effect effect;
  const Elements of(predicted), got(output.got), want(output.want);
  for (std::int64_t at = 0; at < output.elements; ++at) {
    const std::uint64_t p = of[at], w = want[at], g = got[at];
    if (output.same(p, w) && output.same(g, w)) continue;
    if (!output.is_judged(at)) continue;
    if (output.same(p, w)) {
      ++effect.left;
    } else {
      (output.same(p, g) ? effect.right : effect.spoilt).push_back(at);
    }
  }
  return effect;
}

int distance_bits(Format type, std::uint64_t got, std::uint64_t want) {
  std::uint64_t distance = got > want ? got - want : want - got;
  if (is_floating(type)) {
    const bool finite = is_finite(type, got) && is_finite(type, want);
    distance = finite ? std::max<std::uint64_t>(ulp_distance(type, got, want), 1) : 256;
  }
  return std::min(8, static_cast<int>(std::bit_width(distance)));
}

// Bits of evidence in the words that are explained: their distance from the right ones, equal ones twice at most.
int evidence(const FailedOutput& output, const std::vector<std::int64_t>& explained) {
  const Elements got(output.got), want(output.want);
  std::map<std::uint64_t, int> seen;
  int bits = 0;
  for (const std::int64_t at : explained) {
    if (bits > 8 * kEnoughBits) break;
    if (seen[got[at]]++ < 2) bits += distance_bits(output.want.type, got[at], want[at]);
  }
  return bits;
}

class Search {
 public:
  Search(const Failure& failure, const ExplainOptions& options) : failure_(failure), options_(options) {
    for (const FailedOutput& output : failure.outputs()) expected_[output.name] = output.want;
    if (const FailedOutput* product = failure.product(); product != nullptr) {
      const std::size_t count = product->wrong.size(), most = std::min(count, kSample);
      for (std::size_t i = 0; i < most; ++i) sample_.push_back(product->wrong[i * count / most]);
    }
  }

  void run(const diagnosis::ProductVariant* right) {
    const Propose propose = [&](Candidate candidate) { take(std::move(candidate)); };
    propose_output_places(failure_, propose);
    propose_calls(failure_, propose);
    propose_rules(failure_, propose);
    propose_quantized(failure_, propose);
    propose_input_places(failure_, propose);
    if (right != nullptr) propose_products(failure_, *right, propose);
    std::stable_sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
      return a.matched != b.matched ? a.matched > b.matched : a.candidate.cost < b.candidate.cost;
    });
    // Those that give the whole sample are all computed: which gives every word shows only then.
    std::size_t most = kFinalists;
    while (most < finalists_.size() && finalists_[most].matched == sample_.size() && most < 4 * kFinalists) ++most;
    for (std::size_t i = 0; i < std::min(most, finalists_.size()); ++i) compute(finalists_[i].candidate);
  }

  std::int64_t tried() const { return tried_; }

  std::vector<Cause> best() {
    std::stable_sort(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) {
      const auto rank = [](const Cause& cause) { return !cause.full ? 2 : cause.by_chance ? 1 : 0; };
      if (rank(a) != rank(b)) return rank(a) < rank(b);
      if (!a.full && a.explained != b.explained) return a.explained > b.explained;
      if (!a.full && a.spoilt != b.spoilt) return a.spoilt < b.spoilt;
      return a.cost < b.cost;
    });
    std::vector<Cause> best;
    for (Cause& cause : causes_) {
      if (best.size() == options_.most) break;
      const bool told = std::any_of(best.begin(), best.end(),
                                    [&](const Cause& each) { return each.text == cause.text && each.region == cause.region; });
      if (!told) best.push_back(std::move(cause));
    }
    return best;
  }

 private:
  struct Finalist {
    Candidate candidate;
    std::size_t matched;
  };

  void take(Candidate candidate) {
    ++tried_;
    if (options_.tried) options_.tried(candidate.text);
    if (!candidate.some) return compute(candidate);
    try {
      const Words words = candidate.some(sample_);
      const FailedOutput& product = *failure_.product();
      const Elements got(product.got);
      std::size_t matched = 0;
      for (std::size_t i = 0; i < sample_.size(); ++i) matched += words[i] && product.same(*words[i], got[sample_[i]]);
      if (matched * 20 < sample_.size() || matched == 0) return;
      finalists_.push_back({std::move(candidate), matched});
    } catch (const std::exception&) {  // a call that the reference refuses explains nothing
    }
  }

  void compute(const Candidate& candidate) {
    Outputs outputs = expected_;
    try {
      if (!candidate.all(outputs)) return;
      judge(candidate, outputs);
    } catch (const std::exception&) {  // as above
    }
  }

  // Words of every output, of a cause everywhere or in the region that it needs.
  void judge(const Candidate& candidate, const Outputs& outputs) {
    Cause cause;
    cause.text = candidate.text;
    cause.cost = candidate.cost;
    bool full = true;
    int bits = 0;
    std::set<std::string> regions;
    for (const FailedOutput& output : failure_.outputs()) {
      const Tensor& predicted = outputs.at(output.name);
      if (predicted.bytes.size() != output.want.bytes.size()) return;
      const Effect effect = effect_of(output, predicted);
      cause.explained += static_cast<std::int64_t>(effect.right.size());
      cause.spoilt += static_cast<std::int64_t>(effect.spoilt.size());
      bits += evidence(output, effect.right);
      if (effect.left > 0) full = false;
      if (effect.spoilt.empty() || !full) continue;
      if (effect.right.size() < output.wrong.size()) {
        full = false;
        continue;
      }
      const auto region =
          effect.right.empty() ? Region{"not in " + output.name, 2} : find_region(output, effect.right, effect.spoilt);
      full = region.has_value();
      if (!region) continue;
      regions.insert(region->text);
      cause.cost += region->cost;
      bits -= region->cost;
    }
    if (cause.explained == 0) return;
    // A fill is one value, known before: each word that has it counts.
    if (candidate.is_fill) bits += static_cast<int>(std::min<std::int64_t>(cause.explained, kEnoughBits));
    cause.full = full;
    cause.by_chance = full && bits < kEnoughBits;
    if (full) {
      for (const std::string& region : regions) cause.region += (cause.region.empty() ? "" : "; ") + region;
      cause.spoilt = 0;
    }
    causes_.push_back(std::move(cause));
  }

  const Failure& failure_;
  const ExplainOptions& options_;
  Outputs expected_;
  std::vector<std::int64_t> sample_;
  std::vector<Finalist> finalists_;
  std::vector<Cause> causes_;
  std::int64_t tried_ = 0;
};

}  // namespace
}  // namespace explaining

Explanation explain(const KeptCall& kept, const ExplainOptions& options) {
  using namespace explaining;
  const Failure failure(kept);
  Explanation explanation;
  explanation.wrong = failure.wrong();
  explanation.words = failure.words();
  explanation.note = failure.note();
  require(explanation.wrong > 0, "outputs", "all as expected", "a wrong one to explain");
  Search search(failure, options);
  const FailedOutput* const product = failure.product();
  if (product == nullptr || product->wrong.empty()) {
    search.run(nullptr);
  } else {
    visit_product(failure.request(), [&](const GroupedGemmProblem& problem, void* d) {
      const diagnosis::ProductVariant right(view_of(problem, d), diagnosis::rows_of(problem), diagnosis::columns_of(problem));
      search.run(&right);
    });
  }
  explanation.tried = search.tried();
  explanation.causes = search.best();
  return explanation;
}

std::string text_of(const Cause& cause, const Explanation& explanation) {
  const std::string what = cause.text + (cause.region.empty() ? "" : ", " + cause.region);
  if (cause.full) {
    const char* chance = cause.by_chance ? ", so few that chance could do it" : "";
    return fmt::format("{}: every word, {} wrong and {} right{}", what, explanation.wrong, explanation.words - explanation.wrong,
                       chance);
  }
  const std::string spoilt = cause.spoilt == 0 ? "" : fmt::format("; {} other words would differ", cause.spoilt);
  return fmt::format("{}: {} of {} wrong words{}", what, cause.explained, explanation.wrong, spoilt);
}

}  // namespace assay::conformance
