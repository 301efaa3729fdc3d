#include "device/emulated_gemm/merge_program.h"

#include <utility>

#include "reference/gemm/merge_shape.h"

namespace assay::device::emulated {
namespace {

struct Tree {
  std::vector<std::int16_t> steps;
  int height;  // of the stack that they need
};

Tree slice(std::int64_t number) { return {{static_cast<std::int16_t>(number)}, 1}; }

Tree sum_of(Tree first, Tree second) {
  if (first.height < second.height) std::swap(first, second);
  first.steps.insert(first.steps.end(), second.steps.begin(), second.steps.end());
  first.steps.push_back(-1);
  if (first.height == second.height) ++first.height;
  return first;
}

// Neighbours in pairs; an odd last one goes up as it is.
Tree tree_of_pairs(std::int64_t slices) {
  std::vector<Tree> level;
  for (std::int64_t number = 0; number < slices; ++number) level.push_back(slice(number));
  while (level.size() > 1) {
    std::vector<Tree> above;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(sum_of(std::move(level[i]), std::move(level[i + 1])));
    if (level.size() % 2 != 0) above.push_back(std::move(level.back()));
    level = std::move(above);
  }
  return std::move(level[0]);
}

Tree tree_of_shape(std::string_view shape) {
  std::vector<Tree> stack;
  for (const std::int64_t step : postfix_of_shape(shape)) {
    if (step >= 0) {
      stack.push_back(slice(step));
      continue;
    }
    Tree second = std::move(stack.back());
    stack.pop_back();
    stack.back() = sum_of(std::move(stack.back()), std::move(second));
  }
  return std::move(stack[0]);
}

}  // namespace

std::vector<std::int16_t> merge_program(const AccumulationPlan& plan) {
  switch (plan.merge) {
    case SliceMerge::tree_f32: return tree_of_pairs(plan.slices).steps;
    case SliceMerge::shape_f32: return tree_of_shape(plan.merge_shape).steps;
    default: return {};
  }
}

std::int64_t merge_steps(const AccumulationPlan& plan) {
  const bool tree = plan.merge == SliceMerge::tree_f32 || plan.merge == SliceMerge::shape_f32;
  return tree && plan.slices >= 1 && plan.slices <= 1024 ? 2 * plan.slices - 1 : 0;
}

}  // namespace assay::device::emulated
