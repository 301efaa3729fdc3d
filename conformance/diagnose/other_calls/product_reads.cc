// Other parts of the operands: K cut short or begun late, rows, columns and scales of other places.

#include <fmt/format.h>

#include <algorithm>

#include "conformance/diagnose/other_calls/product_ways.h"

namespace assay::conformance::diagnosis {
namespace {

using Groups = std::vector<GroupView>;

// Changes the depth of every group; false where nothing changes.
template <class Depth>
bool cut(ProductVariant& variant, Depth depth) {
  bool changed = false;
  for (GroupView& group : variant.view.groups) {
    const std::int64_t other = depth(group.depth);
    if (other < 0) return false;
    changed = changed || other != group.depth;
    group.depth = group.rows.depth = group.columns.depth = other;
  }
  return changed;
}

// K begins `n` later. Only where scales allow it.
bool begin_late(OperandView& operand, std::int64_t n) {
  ScaleView& scale = operand.scale;
  if (operand.type == Format::e2m1 && (n * operand.k_stride) % 2 != 0) return false;
  if (scale.k_block != 0 && (scale.swizzled || n % scale.k_block != 0)) return false;
  operand.data = static_cast<const std::byte*>(operand.data) + bytes_of(operand.type, n * operand.k_stride);
  if (scale.k_block != 0)
    scale.data = static_cast<const std::byte*>(scale.data) + n / scale.k_block * scale.k_stride * (bits_of(scale.type) / 8);
  operand.depth -= n;
  return true;
}

bool begin_late(ProductVariant& variant, std::int64_t n) {
  bool changed = false;
  for (GroupView& group : variant.view.groups) {
    if (group.depth == 0) continue;
    if (n >= group.depth || !begin_late(group.rows, n) || !begin_late(group.columns, n)) return false;
    group.depth -= n;
    changed = true;
  }
  return changed;
}

// As if the operand's storage were that of its transpose.
bool transpose(OperandView& operand) {
  if (operand.type == Format::e2m1 || operand.extent < 2 || operand.depth < 2) return false;
  const bool k_major = operand.k_stride == 1;
  operand.row_stride = k_major ? 1 : operand.depth;
  operand.k_stride = k_major ? operand.extent : 1;
  return true;
}

using OperandOf = OperandView GroupView::*;

template <class Change>
bool every(ProductVariant& variant, OperandOf operand, Change change) {
  bool changed = false;
  const Groups before = variant.view.groups;
  for (std::size_t g = 0; g < before.size(); ++g) changed = change(before, g, variant.view.groups[g].*operand) || changed;
  return changed;
}

void add_cuts(const ProductVariant& right, std::vector<NamedVariant>& variants) {
  // Rows with the same effect are reported once, by the simplest.
  const bool even = !right.view.groups.empty() &&
                    std::all_of(right.view.groups.begin(), right.view.groups.end(),
                                [&](const GroupView& group) { return group.depth == right.view.groups[0].depth; });
  if (even) {
    const std::int64_t depth = right.view.groups[0].depth;
    std::int64_t last = depth;
    for (const std::int64_t multiple : {2, 4, 8, 16, 32, 64, 128, 256}) {
      const std::int64_t kept = depth / multiple * multiple;
      if (kept == last) continue;
      last = kept;
      variants.push_back({fmt::format("without the last {} of {} along K: its tail of a multiple of {} is left out", depth - kept,
                                      depth, multiple),
                          [kept](ProductVariant& variant) { return cut(variant, [kept](std::int64_t) { return kept; }); }});
    }
  } else {
    for (const std::int64_t multiple : {2, 4, 8, 16, 32, 64, 128, 256}) {
      variants.push_back({fmt::format("with the rows of each group, summed over, rounded down to a multiple of {}", multiple),
                          [multiple](ProductVariant& variant) {
                            return cut(variant, [multiple](std::int64_t depth) { return depth / multiple * multiple; });
                          }});
    }
  }
  for (const std::int64_t n : {1, 2, 4, 8, 16, 32, 64, 128}) {
    variants.push_back({fmt::format("without the last {} along K", n), [n](ProductVariant& variant) {
                          return cut(variant, [n](std::int64_t depth) { return std::max<std::int64_t>(depth - n, 0); });
                        }});
    variants.push_back(
        {fmt::format("without the first {} along K", n), [n](ProductVariant& variant) { return begin_late(variant, n); }});
  }
  for (const std::int64_t multiple : {8, 16, 32, 64, 128}) {
    variants.push_back({fmt::format("with K rounded up to a multiple of {}: its tail is not masked", multiple),
                        [multiple](ProductVariant& variant) {
                          for (const GroupView& group : variant.view.groups) {
                            for (const std::int64_t block : {group.rows.scale.k_block, group.columns.scale.k_block}) {
                              if (block != 0 && multiple > block) return false;
                            }
                          }
                          return cut(variant,
                                     [multiple](std::int64_t depth) { return (depth + multiple - 1) / multiple * multiple; });
                        }});
  }
}

void add_places(const ProductVariant& right, std::vector<NamedVariant>& variants) {
  constexpr std::pair<OperandOf, const char*> kOperands[] = {{&GroupView::rows, "the operand of D's rows"},
                                                             {&GroupView::columns, "the operand of D's columns"}};
  for (const auto& [operand, name] : kOperands) {
    variants.push_back(
        {fmt::format("with {} read from the place of the group before", name), [operand = operand](ProductVariant& variant) {
           return every(variant, operand, [operand](const Groups& before, std::size_t g, OperandView& view) {
             if (g == 0) return false;
             view.data = (before[g - 1].*operand).data;
             return true;
           });
         }});
    variants.push_back({fmt::format("with {} read from the place of the first group for all", name),
                        [operand = operand](ProductVariant& variant) {
                          return every(variant, operand, [operand](const Groups& before, std::size_t g, OperandView& view) {
                            view.data = (before[0].*operand).data;
                            return g > 0;
                          });
                        }});
    variants.push_back(
        {fmt::format("with scales of {} from the place of the group before", name), [operand = operand](ProductVariant& variant) {
           return every(variant, operand, [operand](const Groups& before, std::size_t g, OperandView& view) {
             if (g == 0 || view.scale.data == nullptr) return false;
             view.scale.data = (before[g - 1].*operand).scale.data;
             return true;
           });
         }});
    variants.push_back({fmt::format("with scales of {} from the place of the first group for all", name),
                        [operand = operand](ProductVariant& variant) {
                          return every(variant, operand, [operand](const Groups& before, std::size_t g, OperandView& view) {
                            if (view.scale.data == nullptr) return false;
                            view.scale.data = (before[0].*operand).scale.data;
                            return g > 0;
                          });
                        }});
    variants.push_back(
        {fmt::format("with the first scale of {} along K for all of K", name), [operand = operand](ProductVariant& variant) {
           return every(variant, operand, [](const Groups&, std::size_t, OperandView& view) {
             if (view.scale.k_block == 0 || view.scale.swizzled) return false;
             view.scale.k_stride = 0;
             return true;
           });
         }});
    variants.push_back(
        {fmt::format("with {} read transposed within each group", name), [operand = operand](ProductVariant& variant) {
           return every(variant, operand, [](const Groups&, std::size_t, OperandView& view) { return transpose(view); });
         }});
  }
  // Weights of other groups by their number: those of D's columns in TN and NN follow one another, a group each.
  const auto by_number = [&](const std::string& text, auto number_of) {
    variants.push_back({text, [number_of](ProductVariant& variant) {
                          std::size_t g = 0;
                          return every(variant, &GroupView::columns, [&](const Groups&, std::size_t, OperandView& view) {
                            const std::int64_t size = bytes_of(view.type, view.extent * view.depth);
                            const std::int64_t offset =
                                static_cast<const std::byte*>(view.data) - static_cast<const std::byte*>(variant.columns.data);
                            const std::int64_t position = static_cast<std::int64_t>(g++);
                            if (size == 0 || offset % size != 0 || view.extent * view.depth == variant.columns.elements)
                              return false;
                            const std::int64_t number = offset / size, other = number_of(number, position);
                            view.data = static_cast<const std::byte*>(variant.columns.data) + other * size;
                            return other != number;
                          });
                        }});
  };
  by_number("with the weights of the groups that have rows counted alone: empty groups left out",
            [](std::int64_t, std::int64_t position) { return position; });
  for (const std::int64_t most : {32, 64, 128, 256})
    by_number(fmt::format("with the weights of the group number modulo {}", most),
              [most](std::int64_t number, std::int64_t) { return number % most; });
  if (right.view.kind == GemmKind::nvfp4) {
    const auto amax = [&](const std::string& text, auto change) {
      variants.push_back({text, [change](ProductVariant& variant) {
                            for (GroupView& group : variant.view.groups) change(group);
                            return true;
                          }});
    };
    amax("with the amax of the operand of D's columns for both operands",
         [](GroupView& group) { group.rows.amax = group.columns.amax; });
    amax("with the amax of the operand of D's rows for both operands",
         [](GroupView& group) { group.columns.amax = group.rows.amax; });
    amax("with the amax of the operand of D's rows left out", [](GroupView& group) { group.rows.amax = 1; });
    amax("with the amax of the operand of D's columns left out", [](GroupView& group) { group.columns.amax = 1; });
  }
  variants.push_back({"with C read as if every group began where the first does", [](ProductVariant& variant) {
                        if (variant.view.c == nullptr || variant.view.groups.size() < 2) return false;
                        variant.c_of_first_group = true;
                        return true;
                      }});
}

}  // namespace

std::vector<NamedVariant> read_variants(const ProductVariant& right) {
  std::vector<NamedVariant> variants;
  add_cuts(right, variants);
  add_places(right, variants);
  return variants;
}

}  // namespace assay::conformance::diagnosis
