// Operands and scales read from other places: other blocks of K, rows and groups, in all of K or in a part of it. What is read is
// copied to memory of the way, in one order for every storage.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "conformance/diagnose/explain/candidate.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::NamedVariant;
using diagnosis::ProductVariant;
using OperandOf = OperandView GroupView::*;

struct Side {
  OperandOf operand;
  const char* name;
};
constexpr Side kSides[] = {{&GroupView::rows, "D's rows"}, {&GroupView::columns, "D's columns"}};

// A scale or an element: its group in the view, its row and its block (or place) along K.
struct Place {
  std::int64_t group = 0, row = 0, k = 0;
};

std::int64_t blocks_of(const OperandView& operand) {
  return operand.scale.k_block == 0 ? 1 : (operand.depth + operand.scale.k_block - 1) / operand.scale.k_block;
}

// ---- Scales ----------------------------------------------------------------------------------------------------------

using ScaleFrom = std::function<Place(const Place& at, const OperandView& operand)>;
enum class ScaleValue { same, twice, left_out, inverted, power_of_two };

std::uint32_t changed(Format type, std::uint32_t code, ScaleValue value) {
  if (type == Format::f32) {
    float scale;
    std::memcpy(&scale, &code, 4);
    if (value == ScaleValue::twice) scale = scale * scale;
    if (value == ScaleValue::left_out) scale = 1;
    if (value == ScaleValue::inverted) scale = 1 / scale;
    std::memcpy(&code, &scale, 4);
    return value == ScaleValue::power_of_two ? code & 0xff800000u : code;
  }
  if (type != Format::e8m0 || code == 0xff) return code;
  if (value == ScaleValue::twice) return static_cast<std::uint32_t>(std::clamp(2 * static_cast<int>(code) - 127, 0, 254));
  if (value == ScaleValue::left_out) return 127;
  if (value == ScaleValue::inverted) return std::clamp(254 - static_cast<int>(code), 0, 254);
  return code;
}

// Points every group's scales to copies taken from `from`. False where nothing differs.
bool take_scales(ProductVariant& variant, OperandOf operand, const ScaleFrom& from, ScaleValue value,
                 std::vector<std::vector<std::byte>>& storage) {
  const std::vector<GroupView> before = variant.view.groups;
  bool differs = false;
  storage.assign(before.size(), {});
  for (std::size_t g = 0; g < before.size(); ++g) {
    const OperandView& own = before[g].*operand;
    if (own.scale.data == nullptr || own.extent == 0) return false;
    const std::int64_t blocks = blocks_of(own), width = bits_of(own.scale.type) / 8;
    const std::int64_t rows = own.scale.i_block == 0 ? 1 : own.extent;
    storage[g].resize(static_cast<std::size_t>(rows * blocks * width));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        Place place = from({static_cast<std::int64_t>(g), i, b}, own);
        place.group = std::clamp<std::int64_t>(place.group, 0, static_cast<std::int64_t>(before.size()) - 1);
        const OperandView& source = before[static_cast<std::size_t>(place.group)].*operand;
        if (source.extent == 0 || source.depth == 0) return false;
        place.row = std::clamp<std::int64_t>(place.row, 0, source.extent - 1);
        place.k = std::clamp<std::int64_t>(place.k, 0, blocks_of(source) - 1);
        const auto read = [&](const OperandView& view, std::int64_t row, std::int64_t block) {
          std::uint32_t code = 0;
          const std::int64_t at = view.scale.index(row, view.scale.k_block == 0 ? 0 : block * view.scale.k_block);
          std::memcpy(&code, static_cast<const std::byte*>(view.scale.data) + at * width, static_cast<std::size_t>(width));
          return code;
        };
        const bool moved = place.group != static_cast<std::int64_t>(g) || place.row != i || place.k != b;
        const bool valued = value != ScaleValue::same && from({-1, i, b}, own).group == -1;
        std::uint32_t code = moved ? read(source, place.row, place.k) : read(own, i, b);
        if (valued) code = changed(own.scale.type, code, value);
        differs = differs || code != read(own, i, b);
        std::memcpy(storage[g].data() + static_cast<std::size_t>((i * blocks + b) * width), &code,
                    static_cast<std::size_t>(width));
      }
    }
    ScaleView& scale = (variant.view.groups[g].*operand).scale;
    scale.data = storage[g].data();
    scale.first_i = 0;
    scale.i_block = own.scale.i_block == 0 ? 0 : 1;
    scale.i_stride = blocks;
    scale.k_stride = 1;
    scale.swizzled = false;
  }
  return differs;
}

struct Move {
  std::string text;
  ScaleFrom from;
  ScaleValue value = ScaleValue::same;
  bool along_k = false;  // differs from block to block: parts of K are tried too
};

Place along(const Place& at, std::int64_t by) { return {at.group, at.row, at.k + by}; }
Place across(const Place& at, std::int64_t row) { return {at.group, row, at.k}; }

// Scales of other blocks of K.
void add_block_moves(const OperandView& like, std::vector<Move>& moves) {
  const std::int64_t block = like.scale.k_block;
  if (block == 0) return;
  moves.push_back({fmt::format("of the previous {} of K", block),
                   [](const Place& at, const OperandView&) { return along(at, -1); }, ScaleValue::same, true});
  moves.push_back({fmt::format("of the next {} of K", block), [](const Place& at, const OperandView&) { return along(at, 1); },
                   ScaleValue::same, true});
  moves.push_back({fmt::format("of the first {} of K", block),
                   [](const Place& at, const OperandView&) {
                     return Place{at.group, at.row, 0};
                   },
                   ScaleValue::same, true});
  moves.push_back({fmt::format("of the last {} of K", block),
                   [](const Place& at, const OperandView& of) {
                     return Place{at.group, at.row, blocks_of(of) - 1};
                   },
                   ScaleValue::same, true});
  if (like.scale.i_block > 1) {
    moves.push_back({"of the transposed block, with blocks of rows and K exchanged",
                     [size = like.scale.i_block](const Place& at, const OperandView& of) {
                       const Place turned{at.group, at.k * size, at.row / size};
                       return turned.row < of.extent && turned.k < blocks_of(of) ? turned : at;
                     }});
  }
  moves.push_back({"of the blocks of K in reverse", [](const Place& at, const OperandView& of) {
                     return Place{at.group, at.row, blocks_of(of) - 1 - at.k};
                   }});
  moves.push_back({"of neighbouring blocks of K exchanged", [](const Place& at, const OperandView&) {
                     return Place{at.group, at.row, at.k ^ 1};
                   }});
  moves.push_back({"that advance at half speed along K", [](const Place& at, const OperandView&) {
                     return Place{at.group, at.row, at.k / 2};
                   }});
  moves.push_back({"read with rows and blocks of K in the other order", [](const Place& at, const OperandView& of) {
                     const std::int64_t linear = at.row * blocks_of(of) + at.k;
                     return Place{at.group, linear % of.extent, linear / of.extent};
                   }});
  for (const std::int64_t slice : {2, 3, 4}) {
    moves.push_back(
        {fmt::format("of the first slice of {} blocks of K in every slice", slice), [slice](const Place& at, const OperandView&) {
           return Place{at.group, at.row, at.k % slice};
         }});
  }
  for (const std::int64_t by : {2, 3, 4}) {
    moves.push_back({fmt::format("of {} blocks of {} of K before", by, block),
                     [by](const Place& at, const OperandView&) { return along(at, -by); }, ScaleValue::same, true});
    moves.push_back({fmt::format("of the first of every {} blocks of K", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row, at.k / by * by};
                     }});
  }
}

std::vector<Move> scale_moves(const OperandView& like) {
  std::vector<Move> moves;
  const auto same = [](const Place& at, const OperandView&) { return at; };
  add_block_moves(like, moves);
  for (const std::int64_t by : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const char* s = by == 1 ? "" : "s";
    moves.push_back({fmt::format("of the row {} further{}", by, s),
                     [by](const Place& at, const OperandView&) { return across(at, at.row + by); }});
    moves.push_back(
        {fmt::format("of the row {} before", by), [by](const Place& at, const OperandView&) { return across(at, at.row - by); }});
    moves.push_back({fmt::format("of rows exchanged in blocks of {}", by),
                     [by](const Place& at, const OperandView&) { return across(at, at.row ^ by); }});
    if (by > 1)
      moves.push_back({fmt::format("of the first row of every {}", by),
                       [by](const Place& at, const OperandView&) { return across(at, at.row / by * by); }});
  }
  moves.push_back({"of the first row for all", [](const Place& at, const OperandView&) { return across(at, 0); }});
  moves.push_back({"of the group before", [](const Place& at, const OperandView&) {
                     return Place{at.group == -1 ? -1 : at.group - 1, at.row, at.k};
                   }});
  moves.push_back({"of the group after", [](const Place& at, const OperandView&) {
                     return Place{at.group == -1 ? -1 : at.group + 1, at.row, at.k};
                   }});
  moves.push_back({"of the first group", [](const Place& at, const OperandView&) {
                     return Place{at.group == -1 ? -1 : 0, at.row, at.k};
                   }});
  for (const std::int64_t by : {32, 64, 128, 256}) {
    moves.push_back({fmt::format("of {} groups before", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group == -1 ? -1 : at.group - by, at.row, at.k};
                     }});
  }
  moves.push_back({"applied twice", same, ScaleValue::twice, true});
  moves.push_back({"left out", same, ScaleValue::left_out, true});
  moves.push_back({"inverted", same, ScaleValue::inverted, true});
  moves.push_back({"cut to powers of two", same, ScaleValue::power_of_two, true});
  return moves;
}

// A move in a part of K; elsewhere the right scales.
Move within(const Move& move, const std::string& text, const std::function<bool(std::int64_t block, std::int64_t blocks)>& part) {
  Move made = move;
  made.text += text;
  made.from = [from = move.from, part](const Place& at, const OperandView& of) {
    if (part(at.k, blocks_of(of))) return from(at, of);
    return at.group == -1 ? Place{-2, at.row, at.k} : at;
  };
  return made;
}

void add_scale_moves(const ProductVariant& right, OperandOf operand, const std::string& name, ProductWays& ways, bool both) {
  const OperandView& like = right.view.groups[0].*operand;
  std::int64_t blocks = 0;
  for (const GroupView& group : right.view.groups) blocks = std::max(blocks, blocks_of(group.*operand));
  std::vector<Move> all;
  for (const Move& move : scale_moves(like)) {
    all.push_back(move);
    if (!move.along_k || blocks < 2 || blocks > 64) continue;
    const std::int64_t size = like.scale.k_block;
    all.push_back(within(move, " in the last block of K", [](std::int64_t b, std::int64_t count) { return b == count - 1; }));
    for (std::int64_t b = 1; b<blocks; b = blocks> 16 ? b * 2 : b + 1) {
      all.push_back(within(move, fmt::format(" from K {} on", b * size), [b](std::int64_t at, std::int64_t) { return at >= b; }));
      all.push_back(within(move, fmt::format(" below K {}", b * size), [b](std::int64_t at, std::int64_t) { return at < b; }));
      all.push_back(within(move, fmt::format(" in K {}-{}", b * size, (b + 1) * size - 1),
                           [b](std::int64_t at, std::int64_t) { return at == b; }));
    }
  }
  for (const Move& move : all) {
    const auto first = std::make_shared<std::vector<std::vector<std::byte>>>(),
               second = std::make_shared<std::vector<std::vector<std::byte>>>();
    ways.push_back(
        {fmt::format("with scales of {} {}", name, move.text), [move, operand, both, first, second](ProductVariant& variant) {
           if (!both) return take_scales(variant, operand, move.from, move.value, *first);
           const bool rows = take_scales(variant, &GroupView::rows, move.from, move.value, *first);
           const bool columns = take_scales(variant, &GroupView::columns, move.from, move.value, *second);
           return rows && columns;
         }});
  }
}

// ---- Elements --------------------------------------------------------------------------------------------------------

using ElementFrom = std::function<std::optional<Place>(const Place& at, const OperandView& operand)>;  // nothing: 0

void put_code(Format type, std::vector<std::byte>& to, std::int64_t at, std::uint32_t code) {
  if (type == Format::e2m1) {
    std::byte& byte = to[static_cast<std::size_t>(at / 2)];
    byte = at % 2 == 0 ? (byte & std::byte{0xf0}) | std::byte(code) : (byte & std::byte{0x0f}) | std::byte(code << 4);
    return;
  }
  const auto width = static_cast<std::size_t>(bits_of(type) / 8);
  std::memcpy(to.data() + static_cast<std::size_t>(at) * width, &code, width);
}

bool take_elements(ProductVariant& variant, OperandOf operand, const ElementFrom& from, std::vector<std::byte>& storage) {
  const std::vector<GroupView> before = variant.view.groups;
  std::int64_t total = 0;
  std::vector<std::int64_t> first;
  for (const GroupView& group : before) {
    const OperandView& own = group.*operand;
    first.push_back(total);
    total += own.extent * ((own.depth + 1) / 2 * 2);
  }
  const Format type = (before[0].*operand).type;
  if (bits_of(type) != 4 && bits_of(type) != 8 && bits_of(type) != 16) return false;
  storage.assign(static_cast<std::size_t>(total * bits_of(type) / 8), std::byte{0});
  bool differs = false;
  for (std::size_t g = 0; g < before.size(); ++g) {
    const OperandView& own = before[g].*operand;
    const std::int64_t stride = (own.depth + 1) / 2 * 2;
    for (std::int64_t i = 0; i < own.extent; ++i) {
      for (std::int64_t k = 0; k < own.depth; ++k) {
        std::optional<Place> place = from({static_cast<std::int64_t>(g), i, k}, own);
        std::uint32_t code = 0;
        if (place) {
          const auto group =
              static_cast<std::size_t>(std::clamp<std::int64_t>(place->group, 0, static_cast<std::int64_t>(before.size()) - 1));
          const OperandView& source = before[group].*operand;
          if (place->row < 0 || place->row >= source.extent || place->k < 0 || place->k >= source.depth) place.reset();
          if (place) code = source.element(place->row, place->k);
        }
        differs = differs || code != own.element(i, k);
        put_code(type, storage, first[g] + i * stride + k, code);
      }
    }
    OperandView& made = variant.view.groups[g].*operand;
    made.data = storage.data() + first[g] * bits_of(type) / 8;
    made.row_stride = stride;
    made.k_stride = 1;
  }
  (operand == &GroupView::rows ? variant.rows : variant.columns) = diagnosis::Extent{storage.data(), total};
  return differs;
}

struct ElementMove {
  std::string text;
  ElementFrom from;
};

std::vector<ElementMove> element_moves(std::int64_t depth) {
  std::vector<ElementMove> moves;
  for (const std::int64_t by : {1, 2, 4, 8, 16, 32, 64, 128}) {
    moves.push_back({fmt::format("of the row {} further", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row + by, at.k};
                     }});
    moves.push_back({fmt::format("of the row {} before", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row - by, at.k};
                     }});
    moves.push_back({fmt::format("of rows exchanged in blocks of {}", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row ^ by, at.k};
                     }});
    moves.push_back({fmt::format("with K exchanged in blocks of {}", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row, at.k ^ by};
                     }});
    moves.push_back({fmt::format("read {} further along K", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row, at.k + by};
                     }});
    moves.push_back({fmt::format("read {} back along K", by), [by](const Place& at, const OperandView&) {
                       return Place{at.group, at.row, at.k - by};
                     }});
  }
  for (const std::int64_t size : {16, 32, 64, 128}) {
    if (depth > 64 * size) continue;
    for (std::int64_t b = 0; b * size < depth; ++b) {
      const auto in = [b, size](std::int64_t k) { return k / size == b; };
      moves.push_back({fmt::format("left out in K {}-{}", b * size, (b + 1) * size - 1),
                       [in](const Place& at, const OperandView&) { return in(at.k) ? std::nullopt : std::optional(at); }});
      if (b == 0) continue;
      moves.push_back({fmt::format("of the previous {} in K {}-{}", size, b * size, (b + 1) * size - 1),
                       [in, size](const Place& at, const OperandView&) {
                         return std::optional(in(at.k) ? Place{at.group, at.row, at.k - size} : at);
                       }});
    }
  }
  return moves;
}

}  // namespace

ProductWays scale_places(const ProductVariant& right) {
  ProductWays ways;
  bool both = true;
  for (const Side& side : kSides) {
    if ((right.view.groups[0].*side.operand).scale.data == nullptr) {
      both = false;
      continue;
    }
    add_scale_moves(right, side.operand, side.name, ways, false);
  }
  if (both) add_scale_moves(right, &GroupView::rows, "both operands", ways, true);
  return ways;
}

ProductWays operand_places(const ProductVariant& right) {
  ProductWays ways;
  std::int64_t depth = 0;
  for (const GroupView& group : right.view.groups) depth = std::max(depth, group.depth);
  for (const std::int64_t multiple : {8, 16, 32, 64, 128}) {
    ways.push_back({fmt::format("with the tail of K, past a multiple of {}, of the first group for all", multiple),
                    [multiple](ProductVariant& variant) {
                      bool differs = false;
                      const std::int64_t tail = variant.view.groups[0].depth % multiple;
                      for (GroupView& group : variant.view.groups) {
                        const std::int64_t kept = std::min(group.depth / multiple * multiple + tail, group.depth);
                        differs = differs || kept != group.depth;
                        group.depth = group.rows.depth = group.columns.depth = kept;
                      }
                      return differs;
                    }});
  }
  for (const Side& side : kSides) {
    for (const ElementMove& move : element_moves(depth)) {
      const auto storage = std::make_shared<std::vector<std::byte>>();
      ways.push_back(
          {fmt::format("with elements of {} {}", side.name, move.text),
           [move, side, storage](ProductVariant& variant) { return take_elements(variant, side.operand, move.from, *storage); }});
    }
  }
  return ways;
}

}  // namespace assay::conformance::explaining
