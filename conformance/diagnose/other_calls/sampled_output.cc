#include "conformance/diagnose/other_calls/sampled_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "conformance/ops/elements.h"

namespace assay::conformance::diagnosis {
namespace {

constexpr int kEnough = 20;              // bits for a hypothesis that right elements follow too
constexpr int kEnoughAgainstRight = 40;  // for one that they do not follow
constexpr int kEnoughInPart = 60;        // for one that does not explain all wrong elements
constexpr int kMaxElementBits = 8;
constexpr int kMaxPatternBits = 24;

bool is_nan_of_products(Format type, std::uint64_t bits) {
  return (type == Format::f32 || type == Format::bf16 || type == Format::f16) && is_nan(type, bits);
}
bool same(Format type, std::uint64_t a, std::uint64_t b) {
  return a == b || (is_nan_of_products(type, a) && is_nan_of_products(type, b));
}

bool same(const SampledOutput& sample, const Word& word, std::uint64_t predicted, std::uint64_t target) {
  if (word.slack <= 0 || same(sample.type, predicted, target)) return same(sample.type, predicted, target);
  if (!is_finite(sample.type, predicted) || !is_finite(sample.type, target)) return false;
  return std::fabs(value_of(sample.type, predicted) - value_of(sample.type, target)) <= word.slack;
}

int bits_of_distance(Format type, std::uint64_t got, std::uint64_t want) {
  std::uint64_t distance = got > want ? got - want : want - got;
  if (is_floating(type)) {
    distance =
        is_finite(type, got) && is_finite(type, want) ? ulp_distance(type, got, want) : std::uint64_t{1} << kMaxElementBits;
    distance = std::max<std::uint64_t>(distance, 1);  // the sign of a zero
  }
  return std::min(kMaxElementBits, static_cast<int>(std::bit_width(distance)));
}

// The same within a tolerance of the evidence: how far the wrong element is off, in units of that.
int bits_of(const SampledOutput& sample, const Word& word) {
  if (word.slack <= 0) return bits_of_distance(sample.type, word.got, word.want);
  if (!is_finite(sample.type, word.got) || !is_finite(sample.type, word.want)) return kMaxElementBits;
  const double ratio = std::fabs(value_of(sample.type, word.got) - value_of(sample.type, word.want)) / word.slack;
  return ratio < 2 ? 0 : std::min(kMaxElementBits, std::ilogb(ratio));
}

// Every `stride`th element of many; the stride doubles when there are too many.
class Spread {
 public:
  explicit Spread(std::size_t most) : most_(std::max<std::size_t>(most, 2)) {}
  void add(const Word& word) {
    if (count_++ % stride_ != 0) return;
    if (kept_.size() == 2 * most_) {
      for (std::size_t i = 0; i < most_; ++i) kept_[i] = kept_[2 * i];
      kept_.resize(most_);
      stride_ *= 2;
      if ((count_ - 1) % stride_ != 0) return;
    }
    kept_.push_back(word);
  }
  std::int64_t count() const { return count_; }
  std::vector<Word> take(std::size_t most) const {
    if (kept_.size() <= most) return kept_;
    std::vector<Word> words;
    for (std::size_t i = 0; i < most; ++i) words.push_back(kept_[i * kept_.size() / most]);
    return words;
  }

 private:
  std::size_t most_;
  std::int64_t count_ = 0, stride_ = 1;
  std::vector<Word> kept_;
};

}  // namespace

SampledOutput sample_output(const Tensor& got, const Tensor& want, std::span<const std::uint8_t> written, std::size_t most) {
  const Elements of_got(got), of_want(want);
  const std::int64_t count = got.type == Format::e2m1 ? static_cast<std::int64_t>(got.bytes.size()) * 2 : got.elements();
  Spread wrong(most), right(most);
  for (std::int64_t at = 0; at < count; ++at) {
    const std::int64_t byte = got.type == Format::e2m1 ? at / 2 : at * (of_got.bits / 8);
    if (!written.empty() && written[static_cast<std::size_t>(byte)] == 0) continue;
    const Word word{at, of_got[at], of_want[at]};
    (same(got.type, word.got, word.want) ? right : wrong).add(word);
  }
  return {got.type, wrong.take(most), right.take(most), wrong.count()};
}

SampledOutput sample_bounded_output(const Tensor& got, const Tensor& want, std::span<const std::uint8_t> written,
                                    std::span<const CertifiedBound> bounds, std::size_t most) {
  const Elements of_got(got), of_want(want);
  const std::int64_t width = of_got.bits / 8;
  Spread wrong(most), right(most);
  for (std::int64_t at = 0; at < got.elements(); ++at) {
    const CertifiedBound& bound = bounds[static_cast<std::size_t>(at)];
    if (written[static_cast<std::size_t>(at * width)] == 0 || !bound.is_bounded()) continue;
    const bool holds = bound.contains(value_of(got.type, of_got[at]));
    const double slack = std::isfinite(bound.highest - bound.lowest) ? bound.highest - bound.lowest : 0;
    (holds ? right : wrong).add({at, of_got[at], holds ? of_got[at] : of_want[at], slack});
  }
  SampledOutput sample{got.type, wrong.take(most), right.take(most), wrong.count()};
  sample.within_bounds = true;
  return sample;
}

SampledOutput thinned(const SampledOutput& sample, std::size_t wrong, std::size_t right) {
  Spread wrong_words(wrong), right_words(right);
  for (const Word& each : sample.wrong) wrong_words.add(each);
  for (const Word& each : sample.right) right_words.add(each);
  return {sample.type, wrong_words.take(wrong), right_words.take(right), sample.all_wrong, sample.within_bounds};
}

Weight weigh(const SampledOutput& sample, const Prediction& prediction) {
  Weight weight;
  weight.looked_at = static_cast<std::int64_t>(sample.wrong.size());
  std::int64_t misses = 0;
  int bits = 0;
  std::map<std::uint64_t, int> seen;
  for (const Word& word : sample.wrong) {
    const auto predicted = prediction(word.element);
    if (!predicted || !same(sample, word, *predicted, word.got)) {
      if (++misses * 10 > weight.looked_at) return weight;
      continue;
    }
    ++weight.matched;
    if (bits < 4 * kEnoughInPart && seen[word.got]++ < 2) bits += bits_of(sample, word);
  }
  if (weight.matched == 0) return weight;
  weight.all = misses == 0;
  if (!weight.all) {
    weight.accepted = bits >= kEnoughInPart;
    return weight;
  }
  weight.right_too = std::all_of(sample.right.begin(), sample.right.end(), [&](const Word& word) {
    const auto predicted = prediction(word.element);
    return predicted && same(sample, word, *predicted, word.want);
  });
  if (weight.right_too)
    bits += static_cast<int>(std::min<std::size_t>({kMaxPatternBits, sample.wrong.size(), sample.right.size()}));
  weight.accepted = bits >= (weight.right_too ? kEnough : kEnoughAgainstRight);
  return weight;
}

std::string share_text(const SampledOutput& sample, const Weight& weight) {
  const bool sampled = weight.looked_at < sample.all_wrong;
  const std::string looked = sampled ? fmt::format(" that were compared, of {},", sample.all_wrong) : "";
  const std::string part = weight.all ? fmt::format("all {} wrong elements{}", weight.matched, looked)
                                      : fmt::format("{} of {} wrong elements{}", weight.matched, weight.looked_at, looked);
  const char* near = sample.within_bounds ? ", as far as the order of summation lets one tell," : "";
  return fmt::format("{} are{} those of the same call", part, near);
}

}  // namespace assay::conformance::diagnosis
