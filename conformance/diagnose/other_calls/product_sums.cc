// Other plans, units and orders of summation.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "conformance/diagnose/other_calls/product_ways.h"
#include "reference/gemm/any_order.h"

namespace assay::conformance::diagnosis {
namespace {

bool scales_outside(const ProductVariant& variant) { return variant.view.kind == GemmKind::fp8_block; }
bool promotes_with_scales(const AccumulationPlan& plan) { return plan.promotion >= Promotion::fma_scales_first; }

std::int64_t depth_of(const ProductVariant& variant) {
  std::int64_t depth = 0;
  for (const GroupView& group : variant.view.groups) depth = std::max(depth, group.depth);
  return depth;
}

bool fits(const ProductVariant& variant, const TensorCoreUnit& unit) {
  if (variant.view.groups.empty()) return false;
  if (unit.sum != StepSum::fused) return false;  // no library on a device of another vendor is judged by these
  return takes(unit, variant.view.kind, variant.view.groups[0].rows.type, variant.view.groups[0].columns.type);
}

bool promote(ProductVariant& variant, Promotion promotion, std::int64_t interval) {
  if (variant.plan.promotion == promotion && variant.plan.promotion_interval == interval) return false;
  variant.plan.promotion = promotion;
  variant.plan.promotion_interval = interval;
  return true;
}

bool slice(ProductVariant& variant, std::int64_t slices, SliceMerge merge) {
  const std::int64_t step = scales_outside(variant) ? 128 : variant.unit.products_per_step;
  const std::int64_t length = (depth_of(variant) + slices * step - 1) / (slices * step) * step;
  if (length == 0 || length >= depth_of(variant) || variant.plan.slices == slices) return false;
  variant.plan.slices = slices;
  variant.plan.slice_length = length;
  variant.plan.merge = merge;
  return true;
}

// K from its end: only where no scale changes along K.
bool turn_round(OperandView& operand) {
  if (operand.scale.k_block != 0 || operand.type == Format::e2m1) return false;
  operand.data =
      static_cast<const std::byte*>(operand.data) + (operand.depth - 1) * operand.k_stride * (bits_of(operand.type) / 8);
  operand.k_stride = -operand.k_stride;
  return true;
}

// The arithmetic of a unit, without its name.
auto numbers_of(const TensorCoreUnit& unit) {
  return std::tuple(unit.products_per_step, unit.fraction_bits, unit.accumulator, unit.zero_floor, unit.execution);
}
auto numbers_of(const AccumulationPlan& plan, const TensorCoreUnit& unit) {
  return std::tuple(numbers_of(unit), plan.promotion_interval, plan.promotion, plan.slices, plan.slice_length, plan.merge,
                    plan.subnormals, plan.scale_vectors);
}

// "A, B or C".
std::string list_of(const std::vector<std::string_view>& names) {
  std::string text(names[0]);
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

// Plans and units that compute the same are one row.
void add_plans(const ProductVariant& right, std::vector<NamedVariant>& variants) {
  std::map<decltype(numbers_of(right.plan, right.unit)), std::pair<const AccumulationPlan*, std::vector<std::string_view>>> plans;
  for (const AccumulationPlan& plan : accumulation_plans()) {
    const TensorCoreUnit* unit = find_tensor_core_unit(plan.unit);
    if (unit == nullptr || !fits(right, *unit) || promotes_with_scales(plan) != scales_outside(right)) continue;
    if ((plan.scale_vectors != ScaleVectors::none) != (right.plan.scale_vectors != ScaleVectors::none)) continue;
    auto& [first, names] = plans[numbers_of(plan, *unit)];
    if (first == nullptr) first = &plan;
    names.push_back(plan.name);
  }
  plans.erase(numbers_of(right.plan, right.unit));
  for (const auto& [numbers, entry] : plans) {
    const TensorCoreUnit* unit = find_tensor_core_unit(entry.first->unit);
    variants.push_back({"under the plan " + list_of(entry.second), [plan = entry.first, unit](ProductVariant& variant) {
                          variant.plan = *plan;
                          variant.unit = *unit;
                          return true;
                        }});
  }
  std::map<decltype(numbers_of(right.unit)), std::pair<const TensorCoreUnit*, std::vector<std::string_view>>> units;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    if (!fits(right, unit)) continue;
    auto& [first, names] = units[numbers_of(unit)];
    if (first == nullptr) first = &unit;
    names.push_back(unit.name);
  }
  units.erase(numbers_of(right.unit));
  for (const auto& [numbers, entry] : units) {
    variants.push_back(
        {"with the arithmetic of the unit " + list_of(entry.second), [unit = entry.first](ProductVariant& variant) {
           variant.unit = *unit;
           return true;
         }});
  }
}

void add_widths(std::vector<NamedVariant>& variants) {
  for (int bits = 8; bits <= 36; ++bits) {
    variants.push_back({fmt::format("with products cut {} fraction bits below the largest (F = {})", bits, bits),
                        [bits](ProductVariant& variant) { return std::exchange(variant.unit.fraction_bits, bits) != bits; }});
  }
  for (const int products : {4, 8, 16, 32, 64}) {
    variants.push_back({fmt::format("with {} products a step", products), [products](ProductVariant& variant) {
                          return std::exchange(variant.unit.products_per_step, products) != products;
                        }});
  }
  constexpr std::pair<Accumulator, const char*> kAccumulators[] = {
      {Accumulator::f32_truncated, "an f32 sum, cut to 23 fraction bits"},
      {Accumulator::e8m13_truncated, "sums kept to 13 fraction bits"},
      {Accumulator::f16_nearest, "sums kept in f16"}};
  for (const auto& [accumulator, text] : kAccumulators) {
    variants.push_back({fmt::format("with {}", text), [accumulator = accumulator](ProductVariant& variant) {
                          return std::exchange(variant.unit.accumulator, accumulator) != accumulator;
                        }});
  }
  for (const int floor : {-131, -132, -133, -134, -149}) {
    variants.push_back({fmt::format("with zero products taken as 2^{}", floor),
                        [floor](ProductVariant& variant) { return std::exchange(variant.unit.zero_floor, floor) != floor; }});
  }
}

void add_promotions(std::vector<NamedVariant>& variants) {
  variants.push_back({"without promotion to f32: one chain over all of K",
                      [](ProductVariant& variant) { return !scales_outside(variant) && promote(variant, Promotion::none, 0); }});
  for (const std::int64_t interval : {16, 32, 64, 128, 256, 512, 1024}) {
    variants.push_back({fmt::format("with sums promoted to f32 every {} of K", interval), [interval](ProductVariant& variant) {
                          if (scales_outside(variant))
                            return interval <= 128 && promote(variant, variant.plan.promotion, interval);
                          return promote(variant, Promotion::add, interval);
                        }});
  }
  constexpr std::pair<Promotion, const char*> kOrders[] = {
      {Promotion::fma_scales_first, "both scales multiplied first"},
      {Promotion::fma_rows_first, "the sum multiplied by the scale of the rows first"},
      {Promotion::fma_cols_first, "the sum multiplied by the scale of the columns first"}};
  for (const auto& [promotion, text] : kOrders) {
    variants.push_back({fmt::format("with {}", text), [promotion = promotion](ProductVariant& variant) {
                          return scales_outside(variant) && promote(variant, promotion, variant.plan.promotion_interval);
                        }});
  }
  constexpr std::pair<ScaleVectors, const char*> kVectors[] = {
      {ScaleVectors::scales_first, "both scales multiplied first"},
      {ScaleVectors::rows_first, "the sum multiplied by the scale of the rows first"},
      {ScaleVectors::cols_first, "the sum multiplied by the scale of the columns first"}};
  for (const auto& [order, text] : kVectors) {
    variants.push_back({fmt::format("with {}", text), [order = order](ProductVariant& variant) {
                          if (variant.plan.scale_vectors == ScaleVectors::none) return false;
                          return std::exchange(variant.plan.scale_vectors, order) != order;
                        }});
  }
  variants.push_back({"with the promotion's product rounded before its sum, not an fma", [](ProductVariant& variant) {
                        const std::int64_t interval = variant.plan.promotion_interval;
                        if (variant.plan.slices != 1 || !promotes_with_scales(variant.plan) || interval == 0) return false;
                        // Slices of an interval each: fma(s, t, +0) is the rounded product, and their sum is rounded by itself.
                        const std::int64_t slices = (depth_of(variant) + interval - 1) / interval;
                        if (slices < 2) return false;
                        variant.plan.slices = slices;
                        variant.plan.slice_length = interval;
                        variant.plan.merge = SliceMerge::sequential_f32;
                        return true;
                      }});
  variants.push_back({"with subnormals flushed in promotion and scales (subnormals=flushed)", [](ProductVariant& variant) {
                        const bool has =
                            variant.plan.promotion != Promotion::none || variant.plan.scale_vectors != ScaleVectors::none;
                        return has && std::exchange(variant.plan.subnormals, Subnormals::flushed) != Subnormals::flushed;
                      }});
  variants.push_back({"with subnormals kept in promotion and scales (subnormals=kept)", [](ProductVariant& variant) {
                        return std::exchange(variant.plan.subnormals, Subnormals::kept) != Subnormals::kept;
                      }});
  for (const std::int64_t slices : {2, 3, 4, 8}) {
    for (const auto& [merge, text] :
         {std::pair{SliceMerge::sequential_f32, "f32"}, {SliceMerge::sequential_output, "the type of D"}}) {
      variants.push_back({fmt::format("with K in {} slices, added in {}", slices, text),
                          [slices, merge = merge](ProductVariant& variant) { return slice(variant, slices, merge); }});
    }
  }
}

void add_sums(std::vector<NamedVariant>& variants) {
  constexpr std::pair<Summing, const char*> kSums[] = {
      {Summing::exact, "an exact sum, rounded once"},
      {Summing::f32_fma, "f32 sums by FMA, a product at a time"},
      {Summing::f32_products_rounded, "f32 sums of rounded products, a product at a time"},
      {Summing::dequantized_f32, "operands dequantized to f32 first"},
      {Summing::dequantized_bf16, "operands dequantized to bf16 first"},
  };
  for (const auto& [summing, text] : kSums) {
    variants.push_back({fmt::format("with {}", text), [summing = summing](ProductVariant& variant) {
                          variant.summing = summing;
                          return true;
                        }});
  }
  for (const auto& [summing, text] : {std::pair{Summing::kept_in_bf16, "bf16"}, {Summing::kept_in_f16, "f16"}}) {
    for (const std::int64_t step : {1, 8, 16, 32, 64, 128}) {
      variants.push_back({fmt::format("with sums rounded to {} after every {} of K", text, step),
                          [summing = summing, step](ProductVariant& variant) {
                            variant.summing = summing;
                            variant.summing_step = step;
                            return true;
                          }});
    }
  }
  variants.push_back({"with K summed from its end", [](ProductVariant& variant) {
                        for (GroupView& group : variant.view.groups) {
                          if (group.depth > 0 && !(turn_round(group.rows) && turn_round(group.columns))) return false;
                        }
                        return true;
                      }});
}

}  // namespace

std::vector<NamedVariant> sum_variants(const ProductVariant& right) {
  std::vector<NamedVariant> variants;
  add_widths(variants);  // one changed number is more plausible than another plan
  add_promotions(variants);
  add_sums(variants);
  add_plans(right, variants);
  return variants;
}

}  // namespace assay::conformance::diagnosis
