#pragma once
// One layer of the reference's suite as calls of the device's steps, over host memory.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/linear/linear_steps.h"
#include "device/tests/linear/host_kernels.h"
#include "reference/gemm/plan.h"
#include "reference/tests/linear/linear_case.h"

namespace assay::device_linear_suite {

using linear_suite::Case;
using linear_suite::expect_same;
using linear_suite::kPoison;
using linear_suite::make_operands;
using linear_suite::Matrix;
using linear_suite::Operands;

inline constexpr LinearRecipe kRecipes[] = {LinearRecipe::none,  LinearRecipe::tensor_current, LinearRecipe::tensor_delayed,
                                            LinearRecipe::block, LinearRecipe::mxfp8,          LinearRecipe::nvfp4};

inline Case make_case(LinearRecipe recipe, std::vector<std::int64_t> splits = {6, 0, 34, 2}, std::int64_t N = 18,
                      std::int64_t K = 34, std::int64_t beyond = 4) {
  Case c;
  c.config.recipe = recipe;
  c.config.hadamard_sign_mask = 0xB208;
  if (recipe == LinearRecipe::mxfp8 || recipe == LinearRecipe::nvfp4) c.config.architecture = "sm100";
  c.layout = {std::move(splits), N, K, beyond};
  return c;
}

// The plan of the reference for a product, in the form that the emulated path needs.
inline device::EmulatedArithmetic arithmetic_of(const Case& c, GemmLayout layout) {
  PlanKey key;
  key.architecture = c.config.architecture;
  const LinearRecipe recipe = c.config.recipe;
  const bool per_tensor = recipe == LinearRecipe::tensor_current || recipe == LinearRecipe::tensor_delayed;
  key.kind = recipe == LinearRecipe::none    ? (c.config.type == Format::bf16 ? GemmKind::bf16 : GemmKind::f16)
             : per_tensor                    ? GemmKind::fp8_per_tensor
             : recipe == LinearRecipe::block ? GemmKind::fp8_block
             : recipe == LinearRecipe::mxfp8 ? GemmKind::mxfp8
                                             : GemmKind::nvfp4;
  key.layout = layout;
  key.split_accumulator = recipe == LinearRecipe::block || (per_tensor && layout != GemmLayout::TN);
  if (recipe == LinearRecipe::block) key.weight_block = layout == GemmLayout::NT ? WeightBlock::b1x128 : WeightBlock::b128x128;
  const AccumulationPlan* plan = plan_for(key);
  EXPECT_NE(plan, nullptr);
  return {plan, plan == nullptr ? nullptr : find_tensor_core_unit(plan->unit)};
}

inline device::LinearPath path_of(const Case& c, device::GemmPath path) {
  device::LinearPath made;
  made.path = path;
  if (path == device::GemmPath::emulated) {
    made.forward.arithmetic = arithmetic_of(c, GemmLayout::TN);
    made.dgrad.arithmetic = arithmetic_of(c, GemmLayout::NN);
    made.wgrad.arithmetic = arithmetic_of(c, GemmLayout::NT);
  }
  // The reference's own plan, which is not the kernel's default in NT.
  if (path == device::GemmPath::assay) made.wgrad.fp8_block.order = device::Fp8BlockOrder::rows_first;
  return made;
}

// The paths that have the products of a recipe.
inline std::vector<device::GemmPath> paths_of(LinearRecipe recipe) {
  std::vector<device::GemmPath> paths{device::GemmPath::cublaslt, device::GemmPath::emulated};
  if (recipe == LinearRecipe::block) paths.push_back(device::GemmPath::assay);
  return paths;
}

// Pointers to the parts of a matrix, one a group.
template <class Pointer>
std::vector<Pointer> list_of(Pointer first, std::int64_t bytes, std::int64_t groups) {
  std::vector<Pointer> list;
  for (std::int64_t t = 0; t < groups; ++t) {
    list.push_back(reinterpret_cast<Pointer>(reinterpret_cast<std::uintptr_t>(first) + static_cast<std::uintptr_t>(t * bytes)));
  }
  return list;
}

}  // namespace assay::device_linear_suite
