#pragma once
// The elements of an output that differ, one bit each.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "conformance/ops/elements.h"
#include "conformance/ops/output_map.h"
#include "reference/support/parallel.h"

namespace assay::conformance {

// One element that differs. Padding is expected to be 0.
struct Word {
  std::size_t segment = 0;
  std::int64_t offset = 0;   // within the segment
  std::int64_t element = 0;  // within the output
  Coordinates at;            // within the segment
  std::uint64_t got = 0, want = 0;
};

// 64 pseudo-random bits for a number: the same on every machine.
inline std::uint64_t scrambled(std::uint64_t number) {
  number += 0x9E37'79B9'7F4A'7C15;
  number = (number ^ number >> 30) * 0xBF58'476D'1CE4'E5B9;
  number = (number ^ number >> 27) * 0x94D0'49BB'1331'11EB;
  return number ^ number >> 31;
}

class WrongWords {
 public:
  // What one thread finds in elements [begin, end) of a segment.
  class Piece {
   public:
    Piece() = default;
    Piece(std::size_t segment, std::int64_t begin, std::int64_t end) : segment_(segment), begin_(begin), end_(end) {}
    void add(std::int64_t offset) {
      if (bits_.empty()) bits_.resize(static_cast<std::size_t>((end_ - begin_ + 63) / 64));
      const auto at = static_cast<std::size_t>(offset - begin_);
      bits_[at / 64] |= std::uint64_t{1} << (at % 64);
      ++count_;
    }
    std::int64_t count() const { return count_; }

   private:
    friend class WrongWords;
    std::size_t segment_ = 0;
    std::int64_t begin_ = 0, end_ = 0, count_ = 0;
    std::vector<std::uint64_t> bits_;
  };

  void add(Piece piece) {
    if (piece.count_ == 0) return;
    count_ += piece.count_;
    pieces_.push_back(std::move(piece));
  }
  std::int64_t count() const { return count_; }
  std::size_t pieces() const { return pieces_.size(); }

  // At most `most` of them, one from each of as many equal parts, in order; not at equal distances, which could
  // meet one column only.
  std::vector<Word> sample(const OutputMap& map, const Elements& got, const Elements& want, std::int64_t most) const;

  // Calls visit(piece, words) with all of them, a few hundred at a time; pieces in parallel.
  template <class Visit>
  void visit(const OutputMap& map, const Elements& got, const Elements& want, Visit visit) const {
    parallel_for(static_cast<std::int64_t>(pieces_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) visit_piece(static_cast<std::size_t>(p), map, got, want, visit);
    });
  }

 private:
  static constexpr std::size_t kBatch = 512;

  template <class Visit>
  void visit_piece(std::size_t number, const OutputMap& map, const Elements& got, const Elements& want, Visit visit) const {
    const Piece& piece = pieces_[number];
    std::vector<Word> words;
    words.reserve(kBatch);
    Word last = word(map, got, want, piece.segment_, piece.begin_);
    for (std::size_t i = 0; i < piece.bits_.size(); ++i) {
      for (std::uint64_t bits = piece.bits_[i]; bits != 0; bits &= bits - 1) {
        const std::int64_t offset = piece.begin_ + static_cast<std::int64_t>(i) * 64 + __builtin_ctzll(bits);
        words.push_back(last = next(map, got, want, last, offset));
        if (words.size() < kBatch) continue;
        visit(number, std::span<const Word>(words));
        words.clear();
      }
    }
    if (!words.empty()) visit(number, std::span<const Word>(words));
  }
  static Word word(const OutputMap& map, const Elements& got, const Elements& want, std::size_t segment, std::int64_t offset);
  // The element at `offset`, in the segment of `last` and not before it.
  static Word next(const OutputMap& map, const Elements& got, const Elements& want, const Word& last, std::int64_t offset) {
    const Segment& s = map.segments[last.segment];
    const std::int64_t column = last.at.column + (offset - last.offset);
    if (s.swizzle != Swizzle::none || column >= s.columns) return word(map, got, want, last.segment, offset);
    Word found = last;
    found.offset = offset;
    found.element = s.first + offset;
    found.at.column = column;
    found.got = got[found.element];
    found.want = found.at.row < s.used_rows && column < s.used_columns ? want[found.element] : 0;
    return found;
  }

  std::vector<Piece> pieces_;
  std::int64_t count_ = 0;
};

}  // namespace assay::conformance
