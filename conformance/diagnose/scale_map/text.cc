// The scale map as text.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "conformance/diagnose/scale_map/scale_map.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

struct Item {
  bool is_number = true;
  std::int64_t number = 0;
  std::string word;
  bool operator==(const Item&) const = default;
};

std::string compressed(const std::vector<Item>& items) {
  std::string text;
  const auto put = [&](const std::string& part) { text += (text.empty() ? "" : ",") + part; };
  const auto shown = [](const Item& item) { return item.is_number ? show(item.number) : item.word; };
  for (std::size_t i = 0; i < items.size();) {
    std::size_t same = i + 1;
    while (same < items.size() && items[same] == items[i]) ++same;
    std::size_t end = i + 1;
    std::int64_t step = 0;
    if (items[i].is_number && i + 1 < items.size() && items[i + 1].is_number && items[i + 1].number != items[i].number) {
      step = items[i + 1].number - items[i].number;
      while (end < items.size() && items[end].is_number && items[end].number - items[end - 1].number == step) ++end;
    }
    if (same - i >= 2) {
      put(fmt::format("{}x{}", same - i, shown(items[i])));
      i = same;
    } else if (end - i >= 3 || (end - i == 2 && step == 1)) {
      const std::int64_t first = items[i].number, last = items[end - 1].number;
      put(fmt::format("{}{}{}{}", first, first < 0 || last < 0 ? ".." : "-", last, step == 1 ? "" : fmt::format("/{}", step)));
      i = end;
    } else {
      put(shown(items[i]));
      ++i;
    }
  }
  return text;
}

std::string word_text(std::uint32_t bits) {
  if (bits == 0xffff'ffffu) return "unwritten";
  const auto value = std::bit_cast<float>(bits);
  return std::isnan(value) ? "NaN" : fmt::format("D={}", value);
}

Item item_of(const ScaleRead& read) {
  if (read.kind == ScaleRead::Kind::place) return {true, read.place, ""};
  return {false, 0, read.kind == ScaleRead::Kind::several ? "several" : word_text(read.bits)};
}

// "3,5-9 and 7 more ranges" of the sorted numbers.
std::string ranges_text(const std::set<std::int64_t>& numbers, std::size_t most) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const std::int64_t number : numbers) {
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(most, ranges.size()); ++i) {
    const auto [from, to] = ranges[i];
    text += fmt::format("{}{}", i == 0 ? "" : ",", from);
    if (from != to) text += fmt::format("-{}", to);
  }
  return text + (ranges.size() > most ? fmt::format(" and {} more ranges", ranges.size() - most) : "");
}

std::string counted(std::int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// Wrong tiles as rectangles of equal columns over neighbouring rows.
std::string where_text(const ScaleSide& side) {
  constexpr std::size_t kMax = 8;
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> rows;  // group and row of tiles: columns
  for (const ScalePiece& piece : side.pieces) rows[{piece.group, piece.tile_row}].insert(piece.tile_column);
  std::vector<std::string> lines;
  for (auto row = rows.begin(); row != rows.end();) {
    auto next = std::next(row);
    std::int64_t last = row->first.second;
    while (next != rows.end() && next->first.first == row->first.first && next->first.second == last + 1 &&
           next->second == row->second) {
      ++last;
      ++next;
    }
    const auto [group, first] = row->first;
    lines.push_back(fmt::format("    group {}, tile rows {}, tile columns {}\n", group,
                                first == last ? show(first) : fmt::format("{}-{}", first, last), ranges_text(row->second, 12)));
    row = next;
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, lines.size()); ++i) text += lines[i];
  if (lines.size() > kMax) text += fmt::format("    and {} more lines\n", lines.size() - kMax);
  return text;
}

std::string numbers_text(const ScaleSide& side) {
  std::set<std::int64_t> by_rows, by_columns;
  for (const ScalePiece& piece : side.pieces) {
    by_rows.insert(piece.by_rows);
    by_columns.insert(piece.by_columns);
  }
  // Tiles that are wrong from some number on suggest a second wave of tiles.
  const auto from_number_on = [&](const std::set<std::int64_t>& numbers) {
    const bool tail = *numbers.rbegin() == side.tiles - 1 &&
                      *numbers.rbegin() - *numbers.begin() + 1 == static_cast<std::int64_t>(numbers.size());
    return ranges_text(numbers, 8) + (tail ? ", all from there on" : "");
  };
  const std::string one = from_number_on(by_rows), other = from_number_on(by_columns);
  if (one == other) return fmt::format("  numbers of these tiles among {} over all groups: {}\n", side.tiles, one);
  return fmt::format("  numbers of these tiles among {} over all groups, row by row: {}; column by column: {}\n", side.tiles, one,
                     other);
}

// "8 (528 pieces), 16 (527 pieces) and 3 more": values by how many pieces have them.
std::string often_text(const std::map<std::int64_t, std::int64_t>& pieces_of) {
  constexpr std::size_t kMax = 8;
  std::vector<std::pair<std::int64_t, std::int64_t>> often(pieces_of.begin(), pieces_of.end());
  std::stable_sort(often.begin(), often.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(often.size(), kMax); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", often[i].first, counted(often[i].second, "piece"));
  }
  if (often.size() > kMax) text += fmt::format(" and {} more", often.size() - kMax);
  return text;
}

// Block read - block wanted, modulo the blocks of the contraction, where all wrong reads of a piece that are scales of the array
// agree: a pointer that runs ahead or lags shows like this, whichever line it reads. Empty where fewer than half of the pieces
// have one, or all have 0.
std::string shifts_text(const ScaleSide& side) {
  std::map<std::int64_t, std::int64_t> pieces_of;
  std::int64_t shifted = 0;
  for (const ScalePiece& piece : side.pieces) {
    const auto depth = static_cast<std::int64_t>(piece.reads.size());
    std::set<std::int64_t> shifts;
    for (std::size_t b = 0; b < piece.reads.size(); ++b) {
      const ScaleRead& read = piece.reads[b];
      if (!piece.is_wrong(b) || read.kind != ScaleRead::Kind::place || read.place < 0 || read.place >= side.array.elements())
        continue;
      const ScaleArray::Where at = side.array.where(read.place);
      const std::int64_t block = side.array.line_block == 1 ? at.row : at.column;
      shifts.insert(((block - static_cast<std::int64_t>(b)) % depth + depth) % depth);
    }
    if (shifts.size() != 1) continue;
    ++pieces_of[*shifts.begin()];
    ++shifted;
  }
  const auto pieces = static_cast<std::int64_t>(side.pieces.size());
  if (2 * shifted < pieces || (pieces_of.size() == 1 && pieces_of.begin()->first == 0)) return "";
  return fmt::format("{} read - {} wanted, modulo the blocks of the contraction, is the same within {} of {}: {}",
                     side.array.summed, side.array.summed, shifted, counted(pieces, "wrong piece"), often_text(pieces_of));
}

// Laws that hold for every wrong read.
std::string laws_text(const ScaleSide& side) {
  std::vector<std::string> laws;
  std::set<std::int64_t> blocks, distances;
  std::map<std::int64_t, std::set<std::int64_t>> by_block;  // places that wrong reads of a block have
  std::map<std::int64_t, std::int64_t> by_piece;            // distance, where one holds for the wrong reads of a piece: pieces
  std::int64_t of_another = 0, shown = 0;
  bool each_piece = true;
  for (const ScalePiece& piece : side.pieces) {
    std::set<std::int64_t> here;
    bool whole = true;
    for (std::size_t b = 0; b < piece.reads.size(); ++b) {
      const ScaleRead& read = piece.reads[b];
      whole = whole && read.kind == ScaleRead::Kind::place;
      if (!piece.is_wrong(b)) continue;
      blocks.insert(static_cast<std::int64_t>(b));
      if (read.kind != ScaleRead::Kind::place) continue;
      ++shown;
      here.insert(read.place - piece.wanted[b]);
      by_block[static_cast<std::int64_t>(b)].insert(read.place);
    }
    distances.insert(here.begin(), here.end());
    each_piece = each_piece && here.size() <= 1;
    if (here.size() == 1) ++by_piece[*here.begin()];
    // The scales of another line (block), from its first to its last.
    const ScaleArray& array = side.array;
    const std::int64_t start = piece.reads[0].place;
    if (whole && start >= 0 && start < array.elements()) {
      const ScaleArray::Where at = array.where(start);
      const std::int64_t line = array.line_block == 1 ? at.column : at.row * array.line_block;
      bool same = !at.is_padding;
      for (std::size_t b = 0; b < piece.reads.size() && same; ++b) {
        same = piece.reads[b].place == array.place(at.group, line, static_cast<std::int64_t>(b));
      }
      of_another += same;
    }
  }
  std::int64_t depth = 0;
  for (const ScalePiece& piece : side.pieces) depth = std::max(depth, static_cast<std::int64_t>(piece.reads.size()));
  const bool everywhere = static_cast<std::int64_t>(blocks.size()) == depth;
  laws.push_back(everywhere ? fmt::format("each of the {} blocks of the contraction is wrong somewhere", depth)
                            : fmt::format("wrong in blocks {} of the contraction's {}", ranges_text(blocks, 12), depth));
  if (shown > 0 && shown < side.wrong_pieces) {
    laws.push_back(fmt::format("what follows holds for the {} of {} wrong pairs of piece and block that show an index", shown,
                               side.wrong_pieces));
  }
  const std::size_t known = laws.size();
  if (distances.size() == 1)
    laws.push_back(fmt::format("index read - index wanted = {} in every wrong pair", *distances.begin()));
  const bool by_block_alone =
      shown > 0 && side.pieces.size() > 1 &&
      std::all_of(by_block.begin(), by_block.end(), [](const auto& each) { return each.second.size() == 1; });
  if (by_block_alone) {
    std::vector<std::int64_t> places;
    for (const auto& [block, read] : by_block) places.push_back(*read.begin());
    std::set<std::int64_t> shown_blocks;
    for (const auto& [block, read] : by_block) shown_blocks.insert(block);
    laws.push_back(fmt::format("index read depends on the block alone: blocks {} read {}", ranges_text(shown_blocks, 12),
                               list_text(places)));
  }
  const auto pieces = static_cast<std::int64_t>(side.pieces.size());
  if (of_another > 0) {
    laws.push_back(fmt::format("{} of {} read all scales of another {}, each in its place", of_another,
                               counted(pieces, "wrong piece"), side.array.line));
  }
  if (each_piece && distances.size() > 1) {
    laws.push_back("index read - index wanted is the same within each wrong piece: " + often_text(by_piece));
  }
  if (const std::string shifts = shifts_text(side); !shifts.empty()) laws.push_back(shifts);
  if (laws.size() == known)
    laws.push_back(shown == 0 ? "no wrong pair shows an index: no scale of this operand was read, or the other's are wrong too"
                              : "no simple law joins index read and index wanted");
  std::string text;
  for (const std::string& law : laws) text += "  law     " + law + "\n";
  return text;
}

// Pieces that read the same places, the most frequent list first.
std::string lists_text(const ScaleSide& side) {
  constexpr std::size_t kMax = 8, kLongest = 120;
  struct Readers {
    std::int64_t pieces = 0;
    std::set<std::int64_t> tiles;
  };
  std::map<std::string, Readers> readers;
  for (const ScalePiece& piece : side.pieces) {
    Readers& of = readers[list_text(piece.reads)];
    ++of.pieces;
    of.tiles.insert(piece.by_rows);
  }
  std::vector<std::pair<std::string, Readers>> often(readers.begin(), readers.end());
  std::stable_sort(often.begin(), often.end(), [](const auto& a, const auto& b) { return a.second.pieces > b.second.pieces; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, often.size()); ++i) {
    const auto& [list, of] = often[i];
    text += fmt::format("  list    {}: {}, tiles {}\n", list.size() > kLongest ? list.substr(0, kLongest) + "..." : list,
                        counted(of.pieces, "piece"), ranges_text(of.tiles, 8));
  }
  if (often.size() > kMax) text += fmt::format("  and {} more lists\n", often.size() - kMax);
  return text;
}

// The first wrong pieces, each with all its reads.
std::string pieces_text(const ScaleSide& side) {
  constexpr std::size_t kMax = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, side.pieces.size()); ++i) {
    const ScalePiece& piece = side.pieces[i];
    std::size_t first = 0;
    while (first + 1 < piece.reads.size() && !piece.is_wrong(first)) ++first;
    const ScaleRead& read = piece.reads[first];
    text +=
        fmt::format("  tile {} (group {}, tile {},{}), rows {}-{}, columns {}-{}\n", piece.by_rows, piece.group, piece.tile_row,
                    piece.tile_column, piece.row, piece.row + piece.rows - 1, piece.column, piece.column + piece.columns - 1);
    const std::string heading = fmt::format("blocks 0-{} read", piece.reads.size() - 1);
    text += fmt::format("    {} {}\n    {:<{}} {}\n", heading, list_text(piece.reads), "wanted", heading.size(),
                        list_text(piece.wanted));
    if (read.kind == ScaleRead::Kind::place) {
      text += fmt::format("    block {}: ({}) for ({})\n", first, side.array.place_text(read.place),
                          side.array.place_text(piece.wanted[first]));
    } else {
      text += fmt::format("    block {}: {}, first D[{}][{}] = {} (0x{:08x})\n", first, counted(read.wrong, "wrong element"),
                          read.row, read.column, std::bit_cast<float>(read.bits), read.bits);
    }
  }
  if (side.pieces.size() > kMax) text += fmt::format("  and {} more pieces\n", side.pieces.size() - kMax);
  return text;
}

}  // namespace

std::string list_text(const std::vector<ScaleRead>& reads) {
  std::vector<Item> items;
  for (const ScaleRead& read : reads) items.push_back(item_of(read));
  return compressed(items);
}

std::string list_text(const std::vector<std::int64_t>& places) {
  std::vector<Item> items;
  for (const std::int64_t place : places) items.push_back({true, place, ""});
  return compressed(items);
}

std::string text_of(const ScaleSide& side) {
  const ScaleArray& array = side.array;
  std::string text = fmt::format("scales of {} ({}, {}x128, {} with padding, {} of D): ", array.operand, array.tensor,
                                 array.line_block, array.elements(), array.of_columns ? "columns" : "rows");
  text += fmt::format("{} of {} pairs of tile and block right", side.pairs - side.wrong_pairs, side.pairs);
  if (side.calls < side.planned) text += fmt::format("; only {} of {} blocks were examined", side.calls, side.planned);
  text += "\n";
  if (side.wrong_pairs == 0) return text;
  text += fmt::format("  wrong: {} of {} tiles 128x128, {}\n", side.wrong_tiles, side.tiles, counted(side.wrong_pairs, "pair"));
  text += where_text(side);
  text += numbers_text(side);
  const std::pair<std::int64_t, const char*> kinds[] = {{side.others, "another scale"},
                                                        {side.padding, "padding of the array"},
                                                        {side.outside, "memory outside the array"},
                                                        {side.nothing, "no place (NaN, 0 or a fraction: outside the array)"},
                                                        {side.several, "several within one piece"}};
  std::string reads;
  for (const auto& [number, what] : kinds) {
    if (number > 0) reads += fmt::format("{}{} {}", reads.empty() ? "" : "; ", number, what);
  }
  text += fmt::format("  read in their place, by pair of piece and block: {}\n", reads);
  const auto pieces = static_cast<std::int64_t>(side.pieces.size());
  if (pieces == side.wrong_tiles) {
    text += "  each wrong tile is one piece\n";
  } else {
    text += fmt::format("  parts of tiles differ: {} in {}\n", counted(pieces, "wrong piece"), counted(side.wrong_tiles, "tile"));
  }
  return text + laws_text(side) + lists_text(side) + pieces_text(side);
}

}  // namespace assay::conformance
