#include "conformance/diagnose/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <map>
#include <set>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/diagnose/explain/effect.h"
#include "conformance/diagnose/explain/mutants.h"
#include "conformance/diagnose/explain/region.h"
#include "conformance/diagnose/other_calls/product_element.h"
#include "conformance/ops/product.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace explaining {
namespace {

constexpr std::size_t kSample = 48;      // wrong words that a product's candidate is first tried on
constexpr std::size_t kFinalists = 24;   // candidates of products that are computed whole
constexpr int kPairBits = 16;            // more, for one of the pairs of them
constexpr std::size_t kFirsts = 16;      // causes that every other one is combined with
constexpr std::size_t kEnoughPairs = 8;  // of them that give every word
constexpr double kPairShare = 0.6;       // of the time, after which mutants are tried
constexpr int kMostApart = 3;            // causes of the same outputs that are put beside those of others
constexpr std::size_t kMostFull = 40;    // causes with every word that are named

struct OutOfTime {};

class Search {
 public:
  Search(const Failure& failure, const diagnosis::ProductVariant* right, const ExplainOptions& options)
      : failure_(failure), right_(right), options_(options) {
    for (const FailedOutput& output : failure.outputs()) expected_[output.name] = output.want;
    if (const FailedOutput* product = failure.product(); product != nullptr) {
      const std::size_t count = product->wrong.size(), most = std::min(count, kSample);
      for (std::size_t i = 0; i < most; ++i) sample_.push_back(product->wrong[i * count / most]);
    }
  }

  void run() {
    try {
      single_causes();
      if (full_causes() == 0) pairs();
      if (full_causes() == 0 && !options_.mutants.empty()) {
        left_ = propose_mutants(
            failure_, options_.mutants, [&] { return is_over(); }, propose_);
      }
    } catch (const OutOfTime&) {
      complete_ = false;
      if (full_causes() == 0) apart_in_outputs();  // takes no time
    }
    complete_ = complete_ && left_ == 0;
  }

  std::int64_t left() const { return left_; }
  bool complete() const { return complete_; }
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
      if (best.size() >= (cause.full ? std::max(options_.most, kMostFull) : options_.most)) break;
      const bool told = std::any_of(best.begin(), best.end(),
                                    [&](const Cause& each) { return each.text == cause.text && each.region == cause.region; });
      if (!told) best.push_back(std::move(cause));
    }
    return best;
  }

 private:
  struct Finalist {
    std::shared_ptr<const Candidate> candidate;
    std::size_t matched;
  };
  // A candidate, and how many wrong words it gives, less those that it spoils.
  struct Scored {
    std::shared_ptr<const Candidate> candidate;
    std::int64_t score;
  };

  // Whether this share of the time is over.
  bool is_over(double share = 1) const {
    if (options_.seconds <= 0) return false;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > share * options_.seconds;
  }
  void check_time() const {
    if (is_over()) throw OutOfTime();
  }
  std::size_t full_causes() const {
    return static_cast<std::size_t>(std::count_if(causes_.begin(), causes_.end(), [](const Cause& cause) { return cause.full; }));
  }

  void single_causes() {
    propose_scale_layouts(failure_, propose_);
    propose_rules(failure_, propose_);
    propose_quantized(failure_, propose_);
    propose_dbias(failure_, propose_);
    propose_small_ops(failure_, propose_);
    propose_calls(failure_, propose_);
    propose_input_places(failure_, propose_);
    if (right_ != nullptr) propose_products(failure_, *right_, propose_);
    propose_output_places(failure_, propose_);
    std::stable_sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
      return a.matched != b.matched ? a.matched > b.matched : a.candidate->cost < b.candidate->cost;
    });
    // Those that give the whole sample are all computed: which gives every word shows only then.
    std::size_t most = kFinalists;
    while (most < finalists_.size() && finalists_[most].matched == sample_.size() && most < 4 * kFinalists) ++most;
    for (std::size_t i = 0; i < std::min(most, finalists_.size()); ++i) compute(finalists_[i].candidate);
  }

  // The best causes with every other one: a pair counts only where it gives every word of the whole.
  void pairs() {
    std::vector<Scored> firsts = scored_;
    for (const Finalist& each : finalists_) firsts.push_back({each.candidate, static_cast<std::int64_t>(each.matched)});
    std::stable_sort(firsts.begin(), firsts.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
    if (firsts.size() > kFirsts) firsts.resize(kFirsts);
    pairing_ = true;
    apart_in_outputs();
    // Two options are both tried whatever each alone explains.
    std::vector<std::shared_ptr<const Candidate>> options;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(options), [](const auto& each) { return each->is_option; });
    for (std::size_t i = 0; i < options.size(); ++i)
      for (std::size_t j = i + 1; j < options.size(); ++j) pair_of(*options[i], *options[j]);
    std::set<const Candidate*> done;
    for (const Scored& first : firsts) {
      done.insert(first.candidate.get());
      for (const std::shared_ptr<const Candidate>& second : all_) {
        if (done.count(second.get()) == 0) pair_of(*first.candidate, *second);  // else tried in the other order
      }
    }
    pairing_ = false;
  }

  void pair_of(const Candidate& first, const Candidate& second) {
    if (is_over(kPairShare) || full_causes() >= kEnoughPairs) return;
    std::optional<Candidate> both = combined(failure_, right_, first, second);
    if (both) take(std::move(*both));
  }

  // One cause gives every word of some outputs, and another that of all others.
  void apart_in_outputs() {
    std::set<std::string> wrong;
    for (const FailedOutput& output : failure_.outputs())
      if (!output.wrong.empty()) wrong.insert(output.name);
    std::stable_sort(in_outputs_.begin(), in_outputs_.end(),
                     [](const InOutputs& a, const InOutputs& b) { return a.cost < b.cost; });
    std::map<std::set<std::string>, int> kept;  // the simplest of each set of outputs
    in_outputs_.erase(std::remove_if(in_outputs_.begin(), in_outputs_.end(),
                                     [&](const InOutputs& each) { return ++kept[each.outputs] > kMostApart; }),
                      in_outputs_.end());
    for (std::size_t i = 0; wrong.size() > 1 && i < in_outputs_.size(); ++i) {
      for (std::size_t j = i + 1; j < in_outputs_.size(); ++j) {
        const auto &one = in_outputs_[i], &two = in_outputs_[j];
        std::set<std::string> both = one.outputs;
        both.insert(two.outputs.begin(), two.outputs.end());
        if (both != wrong) continue;
        Cause cause;
        const auto named = [](const InOutputs& each) {
          std::string list;
          for (const std::string& output : each.outputs)
            if (each.text.find(output) == std::string::npos) list += (list.empty() ? " in " : " and ") + output;
          for (const std::string& region : each.regions) list += ", " + region;
          return each.text + list;
        };
        cause.text = named(one) + "; and " + named(two);
        cause.explained = failure_.wrong();
        cause.cost = one.cost + two.cost;
        cause.full = cause.two = true;
        cause.by_chance = std::min(one.bits, two.bits) < kEnoughBits;
        causes_.push_back(std::move(cause));
      }
    }
  }

  void take(Candidate made) {
    check_time();
    ++tried_;
    if (options_.tried) options_.tried(made.text);
    const auto candidate = std::make_shared<const Candidate>(std::move(made));
    if (!pairing_ && (candidate->is_transform || candidate->rules || candidate->way || candidate->call))
      all_.push_back(candidate);
    if (!candidate->some) return compute(candidate);
    try {
      const FailedOutput& product = *failure_.product();
      const Elements got(product.got);
      // A pair must give all of the sample.
      if (pairing_ && !gives(*candidate, std::span(sample_).first(std::min<std::size_t>(2, sample_.size())))) return;
      const Words words = candidate->some(sample_);
      std::size_t matched = 0;
      for (std::size_t i = 0; i < sample_.size(); ++i) matched += words[i] && product.same(*words[i], got[sample_[i]]);
      if (pairing_) {
        if (matched == sample_.size()) compute(candidate);
        return;
      }
      if (matched == 0) return;
      if (matched * 20 < sample_.size()) {
        scored_.push_back({candidate, static_cast<std::int64_t>(matched)});
        return;
      }
      finalists_.push_back({candidate, matched});
    } catch (const OutOfTime&) {
      throw;
    } catch (const std::exception&) {  // a call that the reference refuses explains nothing
    }
  }

  bool gives(const Candidate& candidate, std::span<const std::int64_t> elements) const {
    const FailedOutput& product = *failure_.product();
    const Elements got(product.got);
    const Words words = candidate.some(elements);
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (!words[i] || !product.same(*words[i], got[elements[i]])) return false;
    return true;
  }

  void compute(const std::shared_ptr<const Candidate>& candidate) {
    Outputs outputs = expected_;
    try {
      if (!candidate->all(outputs)) return;
      judge(candidate, outputs);
    } catch (const OutOfTime&) {
      throw;
    } catch (const std::exception&) {  // as above
    }
  }

  // Words of every output, of a cause everywhere or in the region that it needs.
  void judge(const std::shared_ptr<const Candidate>& candidate, const Outputs& outputs) {
    Cause cause;
    cause.text = candidate->text;
    cause.cost = candidate->cost;
    cause.two = pairing_;
    bool full = true;
    int bits = pairing_ ? -kPairBits : 0;
    InOutputs in_outputs{candidate->text, {}, {}, candidate->cost, 0};
    std::set<std::string> regions;
    for (const FailedOutput& output : failure_.outputs()) {
      const Tensor& predicted = outputs.at(output.name);
      if (predicted.bytes.size() != output.want.bytes.size()) return;
      const Effect effect = effect_of(output, predicted);
      cause.explained += static_cast<std::int64_t>(effect.right.size());
      cause.spoilt += static_cast<std::int64_t>(effect.spoilt.size());
      const int own = evidence(output, effect.right);
      bits += own;
      const bool all_right = effect.right.size() == output.wrong.size();
      if (effect.spoilt.empty()) {
        full = full && all_right;
        if (all_right && !output.wrong.empty()) in_outputs.add(output.name, "", 0, own);
        continue;
      }
      if (!all_right || pairing_) {
        full = false;
        continue;
      }
      // A mutant is judged as a whole: so many of them, in any region, would fit too much.
      std::optional<Region> region;
      if (effect.right.empty()) {
        region = Region{"not in " + output.name, 2};
      } else if (candidate->has_regions) {
        region = find_region(output, effect.right, effect.spoilt);
      }
      full = full && region.has_value();
      if (!region) continue;
      if (!output.wrong.empty()) in_outputs.add(output.name, region->text, region->cost, own - region->cost);
      regions.insert(region->text);
      cause.cost += region->cost;
      bits -= region->cost;
    }
    if (cause.explained == 0) return;
    if (!pairing_ && !candidate->some && candidate->all) scored_.push_back({candidate, cause.explained - cause.spoilt});
    if (!pairing_ && !in_outputs.outputs.empty()) in_outputs_.push_back(std::move(in_outputs));
    if (pairing_ && !full) return;
    // A fill is one value, known before: each word that has it counts.
    if (candidate->is_fill) bits += static_cast<int>(std::min<std::int64_t>(cause.explained, kEnoughBits));
    cause.full = full;
    cause.by_chance = full && bits < kEnoughBits;
    if (full) {
      for (const std::string& region : regions) cause.region += (cause.region.empty() ? "" : "; ") + region;
      cause.spoilt = 0;
    }
    causes_.push_back(std::move(cause));
  }

  // What a candidate gives of every word of some outputs, in a region of each.
  struct InOutputs {
    std::string text;
    std::set<std::string> outputs, regions;
    int cost, bits;
    void add(const std::string& output, const std::string& region, int more, int evidence) {
      outputs.insert(output);
      if (!region.empty()) regions.insert(region);
      cost += more;
      bits += evidence;
    }
  };

  const Failure& failure_;
  const diagnosis::ProductVariant* right_;
  const ExplainOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Propose propose_ = [this](Candidate candidate) { take(std::move(candidate)); };
  Outputs expected_;
  std::vector<std::int64_t> sample_;
  std::vector<std::shared_ptr<const Candidate>> all_;  // that can be one of a pair
  std::vector<Finalist> finalists_;
  std::vector<Scored> scored_;
  std::vector<InOutputs> in_outputs_;
  std::vector<Cause> causes_;
  bool pairing_ = false, complete_ = true;
  std::int64_t tried_ = 0, left_ = 0;
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
  const auto finish = [&](Search& search) {
    search.run();
    explanation.tried = search.tried();
    explanation.left = search.left();
    explanation.complete = search.complete();
    explanation.causes = search.best();
  };
  const FailedOutput* const product = failure.product();
  if (product == nullptr || product->wrong.empty()) {
    Search search(failure, nullptr, options);
    finish(search);
  } else {
    visit_product(failure.request(), [&](const GroupedGemmProblem& problem, void* d) {
      const diagnosis::ProductVariant right(view_of(problem, d), diagnosis::rows_of(problem), diagnosis::columns_of(problem));
      Search search(failure, &right, options);
      finish(search);
    });
  }
  return explanation;
}

std::size_t Explanation::alike() const {
  return static_cast<std::size_t>(std::count_if(causes.begin(), causes.end(), [](const Cause& cause) { return cause.full; }));
}

std::string text_of(const Cause& cause, const Explanation& explanation) {
  const std::string what = (cause.two ? "two causes: " : "") + cause.text + (cause.region.empty() ? "" : ", " + cause.region);
  if (cause.full) {
    const char* chance = cause.by_chance ? ", so few that chance could do it" : "";
    return fmt::format("{}: every word, {} wrong and {} right{}", what, explanation.wrong, explanation.words - explanation.wrong,
                       chance);
  }
  const std::string spoilt = cause.spoilt == 0 ? "" : fmt::format("; {} other words would differ", cause.spoilt);
  return fmt::format("{}: {} of {} wrong words{}", what, cause.explained, explanation.wrong, spoilt);
}

}  // namespace assay::conformance
