#include "conformance/diagnose/scale_map/pieces.h"

#include <cstddef>
#include <utility>

namespace assay::conformance {
namespace {

std::int64_t first_line(const ScaleReads& reads, std::int64_t tile, int q) {
  const MappedGroup& group = reads.group_at(tile);
  const std::int64_t within = tile - group.first_tile;
  return reads.array().of_columns ? within % group.tile_columns * kTile + q % 2 * kHalf
                                  : within / group.tile_columns * kTile + q / 2 * kHalf;
}

// Same displacement everywhere, so that the two can be reported as one piece.
bool alike(const ScaleReads& reads, std::int64_t tile, int a, int b) {
  const std::vector<ScaleRead>&one = reads.quarter(tile, a), &other = reads.quarter(tile, b);
  if (one.size() != other.size()) return false;
  const std::int64_t g = reads.group_of(tile);
  for (std::size_t block = 0; block < one.size(); ++block) {
    if (one[block].kind != other[block].kind) return false;
    const auto at = static_cast<std::int64_t>(block);
    const std::int64_t apart =
        reads.array().place(g, first_line(reads, tile, b), at) - reads.array().place(g, first_line(reads, tile, a), at);
    if (one[block].kind == ScaleRead::Kind::place && other[block].place - one[block].place != apart) return false;
    if (one[block].kind == ScaleRead::Kind::nothing && one[block].bits != other[block].bits) return false;
  }
  return true;
}

void tell_tile(const ScaleReads& reads, std::int64_t tile, ScaleSide& side) {
  const MappedGroup& group = reads.group_at(tile);
  const std::int64_t within = tile - group.first_tile, tile_row = within / group.tile_columns,
                     tile_column = within % group.tile_columns;
  bool any = false;
  for (int q = 0; q < 4; ++q) any = any || !reads.quarter(tile, q).empty();
  if (!any) return;
  ++side.wrong_tiles;
  // Quarters that the matrix has, in rows of two.
  const bool two_rows = !half(tile_row, 1, group.m).empty(), two_columns = !half(tile_column, 1, group.n).empty();
  const bool columns_are_whole = !two_rows || (alike(reads, tile, 0, 2) && (!two_columns || alike(reads, tile, 1, 3)));
  const bool rows_are_whole = !two_columns || (alike(reads, tile, 0, 1) && (!two_rows || alike(reads, tile, 2, 3)));
  const auto add = [&](int from, int to) {  // the quarters between the two, which are alike
    if (reads.quarter(tile, from).empty()) return;
    ScalePiece piece;
    piece.group = reads.group_of(tile);
    piece.tile_row = tile_row, piece.tile_column = tile_column;
    piece.by_rows = tile;
    piece.by_columns = group.first_tile + tile_column * group.tile_rows + tile_row;
    piece.row = half(tile_row, from / 2, group.m).begin;
    piece.column = half(tile_column, from % 2, group.n).begin;
    piece.rows = half(tile_row, to / 2, group.m).end - piece.row;
    piece.columns = half(tile_column, to % 2, group.n).end - piece.column;
    piece.reads = reads.quarter(tile, from);
    for (int q = from + 1; q <= to; ++q) {
      if (q / 2 > to / 2 || q % 2 < from % 2 || q % 2 > to % 2 || reads.quarter(tile, q).empty()) continue;
      for (std::size_t b = 0; b < piece.reads.size(); ++b) piece.reads[b].wrong += reads.quarter(tile, q)[b].wrong;
    }
    const std::int64_t line = reads.array().of_columns ? piece.column : piece.row;
    for (std::int64_t b = 0; b < group.blocks(); ++b) piece.wanted.push_back(reads.array().place(piece.group, line, b));
    side.pieces.push_back(std::move(piece));
  };
  const std::size_t before = side.pieces.size();
  const int last_row = two_rows ? 2 : 0, last_column = two_columns ? 1 : 0;
  if (columns_are_whole && rows_are_whole) {
    add(0, last_row + last_column);
  } else if (columns_are_whole) {
    for (int c = 0; c <= last_column; ++c) add(c, last_row + c);
  } else if (rows_are_whole) {
    for (int r = 0; r <= last_row; r += 2) add(r, r + last_column);
  } else {
    for (int r = 0; r <= last_row; r += 2) {
      for (int c = 0; c <= last_column; ++c) add(r + c, r + c);
    }
  }
  for (std::int64_t b = 0; b < group.blocks(); ++b) {
    bool is_wrong = false;
    for (std::size_t i = before; i < side.pieces.size(); ++i)
      is_wrong = is_wrong || side.pieces[i].is_wrong(static_cast<std::size_t>(b));
    side.wrong_pairs += is_wrong;
  }
}

void count_reads(ScaleSide& side) {
  const ScaleArray& array = side.array;
  for (const ScalePiece& piece : side.pieces) {
    for (std::size_t b = 0; b < piece.reads.size(); ++b) {
      if (!piece.is_wrong(b)) continue;
      ++side.wrong_pieces;
      const ScaleRead& read = piece.reads[b];
      if (read.kind == ScaleRead::Kind::several) {
        ++side.several;
      } else if (read.kind == ScaleRead::Kind::nothing) {
        ++side.nothing;
      } else if (read.place < 0 || read.place >= array.elements()) {
        ++side.outside;
      } else if (array.where(read.place).is_padding) {
        ++side.padding;
      } else {
        ++side.others;
      }
    }
  }
}

}  // namespace

void tell_reads(const ScaleReads& reads, ScaleSide& side) {
  const std::int64_t tiles = reads.product().tiles;
  side.tiles = tiles;
  side.pairs = reads.pairs();
  for (std::int64_t tile = 0; tile < tiles; ++tile) tell_tile(reads, tile, side);
  count_reads(side);
}

}  // namespace assay::conformance
