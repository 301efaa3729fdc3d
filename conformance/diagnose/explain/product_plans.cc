// Plans near the stated one: K in slices of every number, merged in every order, partial sums of which are kept in fewer bits.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "conformance/diagnose/explain/candidate.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::ProductVariant;

std::int64_t deepest(const ProductVariant& variant) {
  std::int64_t depth = 0;
  for (const GroupView& group : variant.view.groups) depth = std::max(depth, group.depth);
  return depth;
}

// "((2+1)+0)": slices from the last on.
std::string from_the_end(std::int64_t slices) {
  std::string shape = std::to_string(slices - 1);
  for (std::int64_t slice = slices - 2; slice >= 0; --slice) shape = "(" + shape + "+" + std::to_string(slice) + ")";
  return shape;
}

bool cut(ProductVariant& variant, std::int64_t slices, std::int64_t length, SliceMerge merge, const std::string& shape) {
  AccumulationPlan& plan = variant.plan;
  if (plan.slices == slices && plan.slice_length == length && plan.merge == merge && plan.merge_shape == shape) return false;
  plan.slices = slices;
  plan.slice_length = slices == 1 ? 0 : length;
  plan.merge = slices == 1 ? SliceMerge::none : merge;
  plan.merge_shape = shape;
  return true;
}

}  // namespace

ProductWays further_plans(const ProductVariant& right) {
  ProductWays ways;
  const std::int64_t depth = deepest(right);
  const std::int64_t step =
      right.view.kind == GemmKind::fp8_block ? 128 : std::max<std::int64_t>(right.unit.products_per_step, 1);
  const auto add = [&](std::int64_t slices, std::int64_t length) {
    const std::string of = fmt::format("with K in {} slices of {}", slices, length);
    const auto shape = std::make_shared<std::string>(from_the_end(slices));
    ways.push_back({of + ", added from the last on",
                    [=](ProductVariant& variant) { return cut(variant, slices, length, SliceMerge::shape_f32, *shape); }});
    ways.push_back({of + ", added in pairs", [=](ProductVariant& variant) {
                      return slices > 2 && cut(variant, slices, length, SliceMerge::tree_f32, "");
                    }});
    ways.push_back({of + ", added in f32",
                    [=](ProductVariant& variant) { return cut(variant, slices, length, SliceMerge::sequential_f32, ""); }});
    ways.push_back({of + ", added in the type of D",
                    [=](ProductVariant& variant) { return cut(variant, slices, length, SliceMerge::sequential_output, ""); }});
  };
  if (right.plan.slices > 1) {
    add(right.plan.slices, right.plan.slice_length);
    ways.push_back({"with K in one piece", [](ProductVariant& variant) { return cut(variant, 1, 0, SliceMerge::none, ""); }});
  }
  for (std::int64_t slices = 2; slices <= 16 && slices * step <= depth + step; ++slices) {
    const std::int64_t length = (depth + slices * step - 1) / (slices * step) * step;
    if (length < depth && (slices - 1) * length < depth) add(slices, length);
  }
  return ways;
}

}  // namespace assay::conformance::explaining
