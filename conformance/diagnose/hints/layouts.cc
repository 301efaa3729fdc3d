// Scales in the order of another layout.

#include "conformance/diagnose/hints/hypothesis.h"

namespace assay::conformance {
namespace {

// Scales that should be swizzled: element `offset` of a group holds the scale that a plain layout has there.
void propose_plain(const WrongOutput& e, Hypotheses& hypotheses) {
  const auto plain = [&](const char* what, bool padded, bool transposed) {
    propose_relocation(
        hypotheses, e, {},
        [&e, padded, transposed](const Word& w) -> std::int64_t {
          const Segment& s = e.map.segments[w.segment];
          const std::int64_t rows = padded ? s.rows : s.used_rows, columns = padded ? s.columns : s.used_columns;
          if (s.swizzle == Swizzle::none || rows < 1 || columns < 1) return -1;
          if (transposed) return e.element_at(w.segment, {w.offset % rows, w.offset / rows});
          return e.element_at(w.segment, {w.offset / columns, w.offset % columns});
        },
        [what](const Tally& tally) { return std::string(what) + ": " + share_text(tally) + ": not swizzled"; });
  };
  plain("scales lie row by row, rows padded", true, false);
  plain("scales lie row by row, without padding", false, false);
  plain("scales lie column by column, columns padded", true, true);
  plain("scales lie column by column, without padding", false, true);
  // Wrong within tiles of 128x4, or tiles in the wrong order.
  propose_relocation(
      hypotheses, e, {},
      [&e](const Word& w) -> std::int64_t {
        const Segment& s = e.map.segments[w.segment];
        if (s.swizzle == Swizzle::none) return -1;
        const bool flipped = s.swizzle == Swizzle::flipped;
        const std::int64_t tiles = (flipped ? s.rows : s.columns) / 4;
        const std::int64_t tile = w.offset / 512, within = w.offset % 512;
        const std::int64_t i = tile / tiles * 128 + within / 4;
        const std::int64_t j = tile % tiles * 4 + within % 4;
        return e.element_at(w.segment, flipped ? Coordinates{j, i} : Coordinates{i, j});
      },
      [](const Tally& tally) { return "scales lie row by row within each tile of 128x4: " + share_text(tally); });
  propose_relocation(
      hypotheses, e, {},
      [&e](const Word& w) -> std::int64_t {
        const Segment& s = e.map.segments[w.segment];
        if (s.swizzle == Swizzle::none) return -1;
        const std::int64_t across = (s.swizzle == Swizzle::flipped ? s.rows : s.columns) / 4;
        const std::int64_t down = s.elements() / 512 / across;
        const std::int64_t tile = w.offset / 512, other = tile % down * across + tile / down;
        const Coordinates at = coordinates_of(s, other * 512 + w.offset % 512);
        return e.element_at(w.segment, at);
      },
      [](const Tally& tally) { return "tiles of 128x4 lie column by column: " + share_text(tally); });
}

// Scales that should lie plainly: element `offset` holds the scale that the swizzled layout of the padded matrix has there.
void propose_swizzled(const WrongOutput& e, Hypotheses& hypotheses) {
  for (const bool flipped : {false, true}) {
    propose_relocation(
        hypotheses, e, {},
        [&e, flipped](const Word& w) -> std::int64_t {
          const Segment& s = e.map.segments[w.segment];
          if (s.swizzle != Swizzle::none) return -1;
          Segment padded = s;
          padded.rows = flipped ? (s.rows + 3) / 4 * 4 : (s.rows + 127) / 128 * 128;
          padded.columns = flipped ? (s.columns + 127) / 128 * 128 : (s.columns + 3) / 4 * 4;
          padded.swizzle = flipped ? Swizzle::flipped : Swizzle::straight;
          return e.element_at(w.segment, coordinates_of(padded, w.offset));
        },
        [](const Tally& tally) { return "scales are swizzled, where a plain layout is expected: " + share_text(tally); });
  }
}

}  // namespace

void propose_layouts(const WrongOutput& e, std::span<const Word> sample, Hypotheses& hypotheses) {
  if (!e.map.is_scale || sample.size() < 4) return;
  const bool swizzled = e.map.segments[sample.front().segment].swizzle != Swizzle::none;
  swizzled ? propose_plain(e, hypotheses) : propose_swizzled(e, hypotheses);
}

}  // namespace assay::conformance
