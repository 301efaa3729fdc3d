#include "conformance/diagnose/hints/hypothesis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/diagnose/hints/codes.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kRandomWords = 4096;
constexpr double kSurprise = 13.8;  // ln of a million

// An element in use anywhere, drawn by `number`; -1 when some draws find only padding.
std::int64_t drawn_element(const WrongOutput& e, std::uint64_t number, std::size_t& segment) {
  for (std::uint64_t draw = 0; draw < 8 && e.map.elements > 0; ++draw) {
    const auto at = static_cast<std::int64_t>(scrambled(number * 8 + draw) % static_cast<std::uint64_t>(e.map.elements));
    auto found = std::upper_bound(e.map.segments.begin(), e.map.segments.end(), at,
                                  [](std::int64_t element, const Segment& s) { return element < s.first; });
    while (found != e.map.segments.begin() && (--found)->elements() == 0) {}
    if (found == e.map.segments.end() || at < found->first || at - found->first >= found->elements()) continue;
    if (!e.is_used(*found, coordinates_of(*found, at - found->first))) continue;
    segment = static_cast<std::size_t>(found - e.map.segments.begin());
    return at;
  }
  return -1;
}

Word word_at(const WrongOutput& e, std::size_t segment, std::int64_t element) {
  Word word;
  word.segment = segment;
  word.element = element;
  word.offset = element - e.map.segments[segment].first;
  word.at = coordinates_of(e.map.segments[segment], word.offset);
  word.want = e.want[element];
  return word;
}

// One step up or down, or a factor of 2 up or down.
std::uint64_t close_code(const WrongOutput& e, std::uint64_t want, std::uint64_t number, std::uint64_t mask) {
  const std::uint64_t exponent = is_floating(e.want.type) ? std::uint64_t{1} << mantissa_bits(e.want.type) : 1;
  const std::uint64_t by = number % 4 < 2 ? 1 : exponent;
  return (number % 2 == 0 ? want + by : want - by) & mask;
}

}  // namespace

void Tally::add(std::span<const std::int8_t> found) {
  elements += static_cast<std::int64_t>(found.size());
  for (const std::int8_t kind : found) {
    if (kind >= 0) ++kinds[static_cast<std::size_t>(kind)];
  }
}

std::string share_text(const Tally& tally) {
  if (tally.elements == 1) return "the only wrong element";
  return tally.explained() == tally.elements ? "all " + show(tally.elements)
                                             : show(tally.explained()) + " of " + show(tally.elements);
}

Chance::Chance(const WrongOutput& e, std::span<const Word> sample) : least_(std::min(0.5, std::ldexp(4.0, -e.want.bits))) {
  const std::uint64_t mask = e.want.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << e.want.bits) - 1;
  const auto count = std::max<std::int64_t>(kRandomWords, static_cast<std::int64_t>(sample.size()));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    std::size_t segment = 0, other = 0;
    const std::int64_t element = drawn_element(e, 2 * number, segment), from = drawn_element(e, 2 * number + 1, other);
    if (element < 0 || from < 0) continue;
    Word word = word_at(e, segment, element);
    word.got = scrambled(number ^ 0x5851'F42D'4C95'7F2D) & mask;
    if (word.got == word.want) word.got = (word.got + 1) & mask;
    random_.push_back(word);
    word.got = e.want[from];
    if (word.got != word.want) drawn_.push_back(word);

    word = sample[static_cast<std::size_t>(i) % sample.size()];
    word.got = e.want[from];
    if (word.got != word.want) strays_.push_back({word, from});
    word.got = close_code(e, word.want, scrambled(~number), mask);
    close_.push_back(word);
  }
}

double Hypothesis::rate(std::span<const Word> words) const {
  if (words.empty()) return 0;
  std::vector<std::int8_t> kinds(words.size());
  explain(words, kinds);
  const auto explained = std::count_if(kinds.begin(), kinds.end(), [](std::int8_t kind) { return kind >= 0; });
  return static_cast<double>(explained) / static_cast<double>(words.size());
}

double Hypothesis::chance(const Chance& chance) const {
  if (claim_.chance >= 0) return claim_.chance;
  return std::max({chance.least(), rate(chance.random()), rate(chance.drawn())});
}

double Relocation::chance(const Chance& chance) const {
  std::int64_t stray = 0, strays = 0, near = 0, close = 0;
  for (const Chance::Stray& each : chance.strays()) {
    const std::int64_t from = source(each.word);
    if (from < 0 || from == each.from || output_.want[from] == each.word.want) continue;
    ++strays;
    stray += output_.want[from] == each.word.got;
  }
  for (const Word& each : chance.close()) {
    const std::int64_t from = source(each);
    if (from < 0 || output_.want[from] == each.want) continue;
    ++close;
    near += output_.want[from] == each.got;
  }
  if (close == 0) return 1;
  const auto part = [](std::int64_t some, std::int64_t all) {
    return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
  };
  const double found = std::max({chance.least(), part(stray, strays), part(near, close)});
  return found > 0.5 ? 1 : found;
}

bool Relocation::is_varied(std::span<const Word> words, std::span<const std::int8_t> kinds) const {
  std::int64_t explained = 0;
  std::set<std::uint64_t> contents;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (kinds[i] < 0) continue;
    ++explained;
    if (contents.size() < 3) contents.insert(words[i].got);
  }
  return explained >= 4 && contents.size() >= 3;
}

bool is_significant(std::int64_t explained, std::int64_t words, double chance, double log_choices) {
  if (explained <= 0 || chance >= 1) return false;
  const double share = static_cast<double>(explained) / static_cast<double>(words);
  if (share <= chance) return false;
  double surprise = share * std::log(share / chance);
  if (share < 1) surprise += (1 - share) * std::log((1 - share) / (1 - chance));
  return surprise * static_cast<double>(words) > kSurprise + log_choices;
}

}  // namespace assay::conformance
