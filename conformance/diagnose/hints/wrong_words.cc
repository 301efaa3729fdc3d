#include "conformance/diagnose/hints/wrong_words.h"

#include <algorithm>
#include <bit>

namespace assay::conformance {

Word WrongWords::word(const OutputMap& map, const Elements& got, const Elements& want, std::size_t segment, std::int64_t offset) {
  const Segment& s = map.segments[segment];
  Word found;
  found.segment = segment;
  found.offset = offset;
  found.element = s.first + offset;
  found.at = coordinates_of(s, offset);
  found.got = got[found.element];
  const bool used = found.at.row < s.used_rows && found.at.column < s.used_columns;
  found.want = used ? want[found.element] : 0;
  return found;
}

std::vector<Word> WrongWords::sample(const OutputMap& map, const Elements& got, const Elements& want, std::int64_t most) const {
  const std::int64_t shares = std::min(most, count_);
  std::vector<Word> words;
  words.reserve(static_cast<std::size_t>(shares));
  auto piece = pieces_.begin();
  std::int64_t before = 0;  // elements of the pieces before
  std::size_t i = 0;        // 64-bit masks of the piece that have been passed
  std::int64_t passed = 0;  // elements in them
  for (std::int64_t share = 0; share < shares; ++share) {
    const std::int64_t begin = count_ / shares * share + count_ % shares * share / shares;
    const std::int64_t end = count_ / shares * (share + 1) + count_ % shares * (share + 1) / shares;
    const std::uint64_t by = scrambled(static_cast<std::uint64_t>(share)) % static_cast<std::uint64_t>(end - begin);
    const std::int64_t chosen = begin + static_cast<std::int64_t>(by);
    while (chosen - before >= piece->count_) before += (piece++)->count_, i = 0, passed = 0;
    while (chosen - before - passed >= std::popcount(piece->bits_[i])) passed += std::popcount(piece->bits_[i++]);
    std::uint64_t bits = piece->bits_[i];
    for (std::int64_t skip = chosen - before - passed; skip > 0; --skip) bits &= bits - 1;
    const std::int64_t offset = piece->begin_ + static_cast<std::int64_t>(i) * 64 + std::countr_zero(bits);
    words.push_back(word(map, got, want, piece->segment_, offset));
  }
  return words;
}

}  // namespace assay::conformance
