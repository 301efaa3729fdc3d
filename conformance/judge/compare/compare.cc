#include "conformance/judge/compare/compare.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "conformance/diagnose/hints/hints.h"
#include "conformance/judge/compare/touched.h"
#include "conformance/judge/compare/ulp_buckets.h"
#include "conformance/ops/elements.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? "," : "") + show(extent);
  return text + "]";
}

bool nan_equals_nan(Format type) { return type == Format::f32 || type == Format::bf16 || type == Format::f16; }

// What one thread found in consecutive elements.
struct Piece {
  std::int64_t count = 0, total = 0, overwritten = 0;
  std::int64_t first_element = 0;
  std::uint64_t got = 0, want = 0;  // of the first
  UlpHistogram ulp;
  TouchedPiece touched;
  std::vector<std::int64_t> cells;  // wrong elements by cell of the segment; empty: none
  std::uint64_t digest = 0;
  WrongWords::Piece used, padding;
};

class Comparison {
 public:
  Comparison(const Case& problem, const std::string& name, const Tensor& expected, const Tensor& produced,
             const CompareOptions& options)
      : problem_(problem), map_(map_output(problem, name, expected)), got_(produced), want_(expected), options_(options) {
    difference_.output = name + " " + std::string(name_of(expected.type)) + " " + shape_text(expected.shape);
    if (options.before != nullptr) before_ = Elements(*options.before);
    if (options.other.produced != nullptr) other_ = {true, Elements(*options.other.produced), Elements(*options.other.before)};
  }

  Difference run() {
    compare_segments();
    compare_tail();
    difference_.where = touched_.text(map_);
    if (tail_ > 0) {
      difference_.where += (difference_.where.empty() ? "" : "; ") + std::string("beyond the splits");
    }
    if (is_floating(want_.type)) difference_.has_ulp = difference_.ulp.total() > 0;
    difference_.in_use = used_.count();
    if (!options_.hints) return std::move(difference_);
    const WrongOutput output{problem_,
                             map_,
                             got_,
                             want_,
                             options_.before != nullptr,
                             before_,
                             other_,
                             options_.scales_are_wrong,
                             std::move(used_),
                             std::move(padding_)};
    difference_.hints = hints_for(output);
    if (difference_.overwritten > 0) {
      difference_.hints.insert(difference_.hints.begin(), "written where nothing may be: " + show(difference_.overwritten) +
                                                              (difference_.overwritten == 1 ? " element" : " elements"));
    }
    return std::move(difference_);
  }

 private:
  bool equal(std::uint64_t got, std::uint64_t want) const {
    if (got == want) return true;
    if (nan_equals_nan(want_.type) && is_nan(want_.type, got) && is_nan(want_.type, want)) return true;
    return options_.zero_sign_free && is_floating(want_.type) && want_.bits <= 8 && is_zero(want_.type, got) &&
           is_zero(want_.type, want);
  }

  // False where the mask says that no byte of the element is written.
  bool may_be_written(std::int64_t element) const {
    if (options_.written.empty()) return true;
    const std::int64_t width = std::max(want_.bits / 8, 1), at = want_.bits == 4 ? element / 2 : element * width;
    for (std::int64_t i = 0; i < width; ++i) {
      if (options_.written[static_cast<std::size_t>(at + i)] != 0) return true;
    }
    return false;
  }

  // Segments that are equal byte for byte are skipped.
  bool same_bytes(const Segment& s) const {
    if (!options_.written.empty() || s.used_rows != s.rows || s.used_columns != s.columns || want_.bits < 8) return false;
    const std::int64_t width = want_.bits / 8;
    return std::memcmp(got_.bytes + s.first * width, want_.bytes + s.first * width,
                       static_cast<std::size_t>(s.elements() * width)) == 0;
  }

  // is_finite() and ulp_distance(), inline for the types of large outputs.
  bool finite(std::uint64_t bits) const {
    return infinity_ != 0 ? (bits & (sign_ - 1)) < infinity_ : is_finite(want_.type, bits);
  }
  std::uint64_t steps_between(std::uint64_t a, std::uint64_t b) const {
    if (infinity_ == 0) return ulp_distance(want_.type, a, b);
    const std::uint64_t x = a & (sign_ - 1), y = b & (sign_ - 1);
    return ((a ^ b) & sign_) != 0 ? x + y : x < y ? y - x : x - y;
  }

  // The place of the element after the one at `at`, whose offset is `offset`.
  static void next(const Segment& s, std::int64_t offset, Coordinates& at) {
    if (s.swizzle == Swizzle::none) {
      if (++at.column == s.columns) at = {at.row + 1, 0};
    } else if (offset < s.elements()) {
      at = coordinates_of(s, offset);
    }
  }

  void note(Piece& piece, std::int64_t element, std::uint64_t got, std::uint64_t want) const {
    if (piece.count++ == 0) {
      piece.first_element = element;
      piece.got = got, piece.want = want;
    }
    piece.digest += wrong_element_hash(element, got);
    if (!floating_) return;
    UlpHistogram& ulp = piece.ulp;
    if (!finite(got) || !finite(want)) {
      ++ulp.special;
      return;
    }
    const std::uint64_t distance = steps_between(got, want);
    if (distance == 0) {
      ++ulp.zero_sign;
      return;
    }
    const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(distance - 1)), kLastUlpBucket);
    if (ulp.buckets.size() <= bucket) ulp.buckets.resize(bucket + 1);
    ++ulp.buckets[bucket];
  }

  // Adds what a piece found to the whole. `place` says where its first mismatch lies.
  template <class Place>
  void take(Piece& piece, Place place) {
    difference_.total += piece.total;
    difference_.overwritten += piece.overwritten;
    if (piece.count > 0 && difference_.count == 0) {
      difference_.first_element = piece.first_element;
      difference_.first_place = place(piece.first_element);
      difference_.got = piece.got, difference_.want = piece.want;
      difference_.got_text = show_element(want_.type, piece.got);
      difference_.want_text = show_element(want_.type, piece.want);
    }
    difference_.count += piece.count;
    difference_.digest += piece.digest;
    difference_.ulp.zero_sign += piece.ulp.zero_sign;
    difference_.ulp.special += piece.ulp.special;
    if (difference_.ulp.buckets.size() < piece.ulp.buckets.size()) difference_.ulp.buckets.resize(piece.ulp.buckets.size());
    for (std::size_t b = 0; b < piece.ulp.buckets.size(); ++b) difference_.ulp.buckets[b] += piece.ulp.buckets[b];
    used_.add(std::move(piece.used));
    padding_.add(std::move(piece.padding));
  }

  // Elements [begin, end) of a segment.
  void compare_piece(std::size_t index, std::int64_t begin, std::int64_t end, Piece& piece) const {
    const Segment& s = map_.segments[index];
    piece.used = piece.padding = {index, begin, end};
    const CellGrid grid(s.rows, s.columns);
    const auto touch = [&](Coordinates place) {
      piece.touched.add(place);
      if (piece.cells.empty()) piece.cells.resize(grid.size());
      ++piece.cells[grid.cell(place.row, place.column)];
    };
    Coordinates at = coordinates_of(s, begin);
    for (std::int64_t offset = begin; offset < end; ++offset, next(s, offset, at)) {
      const std::int64_t element = s.first + offset;
      const bool used = at.row < s.used_rows && at.column < s.used_columns;
      const std::uint64_t got = got_[element];
      const bool compact_padding = !used && s.swizzle == Swizzle::none;
      if (compact_padding || !may_be_written(element)) {
        // Where the mask marks padding as written (a buffer that is passed on whole), its contents are not checked.
        const bool open = compact_padding && !options_.written.empty() && may_be_written(element);
        if (options_.before == nullptr || open) continue;
        ++piece.total;
        if (got == before_[element]) continue;
        ++piece.overwritten;
        touch(at);
        note(piece, element, got, before_[element]);
        continue;
      }
      ++piece.total;
      const std::uint64_t want = used ? want_[element] : 0;
      if (equal(got, want)) continue;
      touch(at);
      note(piece, element, got, want);
      (used ? piece.used : piece.padding).add(offset);
    }
  }

  // Pieces do not depend on the number of threads, and are added up in their order.
  void compare_segments() {
    struct Range {
      std::size_t segment;
      std::int64_t begin, end;
    };
    constexpr std::int64_t kPiece = std::int64_t{1} << 20;
    std::vector<Range> ranges;
    for (std::size_t s = 0; s < map_.segments.size(); ++s) {
      const Segment& segment = map_.segments[s];
      if (same_bytes(segment)) {
        difference_.total += segment.elements();
        continue;
      }
      for (std::int64_t at = 0; at < segment.elements(); at += kPiece)
        ranges.push_back({s, at, std::min(at + kPiece, segment.elements())});
    }
    std::vector<Piece> pieces(ranges.size());
    parallel_for(static_cast<std::int64_t>(ranges.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        compare_piece(ranges[i].segment, ranges[i].begin, ranges[i].end, pieces[i]);
      }
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Segment& segment = map_.segments[ranges[i].segment];
      take(pieces[i],
           [&](std::int64_t element) { return place_text(map_, segment, coordinates_of(segment, element - segment.first)); });
      pieces[i].touched.move_into(touched_, segment);
      if (!pieces[i].cells.empty()) add_cells(ranges[i].segment, pieces[i].cells);
      pieces[i] = {};
    }
    for (const auto& [index, cells] : cells_) {
      const Segment& segment = map_.segments[index];
      difference_.maps.push_back(wrong_map(map_.grouped ? segment.group : -1, {segment.rows, segment.columns}, cells));
    }
  }

  void add_cells(std::size_t segment, const std::vector<std::int64_t>& wrong) {
    if (cells_.count(segment) == 0 && cells_.size() == kMostMappedGroups) return;
    std::vector<std::int64_t>& cells = cells_[segment];
    cells.resize(wrong.size());
    for (std::size_t i = 0; i < wrong.size(); ++i) cells[i] += wrong[i];
  }

  // Elements outside all groups must be unchanged.
  void compare_tail() {
    if (options_.before == nullptr) return;
    const std::int64_t begin = map_.segments.empty() ? 0 : map_.segments.back().first + map_.segments.back().elements();
    Piece piece;
    for (std::int64_t element = begin; element < map_.elements; ++element) {
      ++piece.total;
      if (got_[element] == before_[element]) continue;
      ++piece.overwritten;
      note(piece, element, got_[element], before_[element]);
    }
    tail_ = piece.count;
    take(piece, [](std::int64_t element) { return "element " + show(element) + ", beyond the splits"; });
  }

  const Case& problem_;
  OutputMap map_;
  Elements got_, want_, before_;
  OtherElements other_;
  CompareOptions options_;
  bool floating_ = is_floating(want_.type);
  std::uint64_t sign_ = std::uint64_t{1} << (want_.bits - 1);
  std::uint64_t infinity_ = want_.type == Format::f32    ? 0x7F80'0000
                            : want_.type == Format::bf16 ? 0x7F80
                            : want_.type == Format::f16  ? 0x7C00
                                                         : 0;
  Touched touched_;
  std::map<std::size_t, std::vector<std::int64_t>> cells_;  // by segment
  std::int64_t tail_ = 0;
  WrongWords used_, padding_;
  Difference difference_;
};

void require_same(const Tensor& expected, const Tensor& produced, std::string_view what) {
  require(produced.type == expected.type, std::string(what) + " type", name_of(produced.type),
          std::string(name_of(expected.type)));
  require(produced.shape == expected.shape, std::string(what) + " shape", shape_text(produced.shape), shape_text(expected.shape));
  require(produced.bytes.size() == expected.bytes.size(), std::string(what) + " bytes", produced.bytes.size(),
          show(expected.bytes.size()));
}

}  // namespace

std::int64_t UlpHistogram::total() const {
  std::int64_t sum = zero_sign + special;
  for (const std::int64_t each : buckets) sum += each;
  return sum;
}

Difference compare(const Case& problem, const std::string& name, const Tensor& expected, const Tensor& produced,
                   const CompareOptions& options) {
  require_same(expected, produced, "produced " + name);
  if (options.before != nullptr) require_same(expected, *options.before, "before " + name);
  require((options.other.produced == nullptr) == (options.other.before == nullptr), "the other run of " + name, "one tensor",
          "its output and the contents before it");
  if (options.other.produced != nullptr) {
    require_same(expected, *options.other.produced, "the other run's " + name);
    require_same(expected, *options.other.before, "before the other run, " + name);
    require(options.before != nullptr, "before " + name, "unknown", "known, where another run is given");
  }
  require(options.written.empty() || (options.before != nullptr && options.written.size() == expected.bytes.size()), "written",
          options.written.size(), "one byte for each byte of the tensor, and its contents before the call");
  return Comparison(problem, name, expected, produced, options).run();
}

Difference compare_untouched(const Case& problem, const std::string& name, const Tensor& before, const Tensor& after) {
  const std::vector<std::uint8_t> nothing(before.bytes.size(), 0);
  CompareOptions options;
  options.before = &before;
  options.written = nothing;
  return compare(problem, name, before, after, options);
}

bool zero_sign_free(const Case& problem) {
  const auto found = problem.attributes.find("zero_sign");
  return found != problem.attributes.end() && std::holds_alternative<std::string>(found->second) &&
         std::get<std::string>(found->second) == "free";
}

}  // namespace assay::conformance
