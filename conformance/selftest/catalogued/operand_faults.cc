// Catalogued faults of the elements that a product reads, of its plan and of what is added to it.

#include <bit>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/product_parts.h"
#include "reference/formats/bf16.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

bool always(const Request&) { return true; }

using Elements = void (*)(ChangedProduct&, Side, const GroupView&, const OperandView&, std::int64_t i, std::int64_t k,
                          std::byte* to);

const OperandView& part(const GroupView& group, Side side) { return side == Side::rows ? group.rows : group.columns; }

ProductChange of_elements(Side side, Elements value) {
  return [=](ChangedProduct& product) {
    product.replace(side, [&](const GroupView& group, std::int64_t i, std::int64_t k, const std::byte*, std::byte* to) {
      value(product, side, group, part(group, side), i, k, to);
    });
  };
}

void copy_element(ChangedProduct& product, Side side, std::byte* to, const std::byte* from) {
  std::memcpy(to, from, static_cast<std::size_t>(product.element_size(side)));
}
void clear(ChangedProduct& product, Side side, std::byte* to) {
  std::memset(to, 0, static_cast<std::size_t>(product.element_size(side)));
}

// The part of the view in front of this one that has rows, or null.
const GroupView* before(const ChangedProduct& product, const GroupView& group) {
  const GroupView* found = nullptr;
  for (const GroupView& each : product.view.groups) {
    if (&each == &group) return found;
    if (each.depth > 0 && each.m > 0) found = &each;
  }
  return found;
}

// The memory of the operand read as if it were stored in the other direction.
void in_other_direction(ChangedProduct& product, Side side, const GroupView&, const OperandView& of, std::int64_t i,
                        std::int64_t k, std::byte* to) {
  const std::int64_t at = i * of.depth + k;
  copy_element(product, side, to, product.element(of, at % of.extent, at / of.extent));
}

void k_tail_zero(ChangedProduct& product, Side side, const GroupView&, const OperandView& of, std::int64_t, std::int64_t k,
                 std::byte* to) {
  // K is divided among tiles in whole steps of 16; what is left over is dropped, or a last slice.
  const std::int64_t whole = of.depth % 16 != 0 ? of.depth / 16 * 16 : of.depth - 16;
  if (k >= whole) clear(product, side, to);
}
void k_block_zero(ChangedProduct& product, Side side, const GroupView&, const OperandView& of, std::int64_t, std::int64_t k,
                  std::byte* to) {
  if (k >= 64 && of.depth > 128) clear(product, side, to);
}
// What lies behind the last whole block of K, of the first group for all.
void k_tail_of_first(ChangedProduct& product, Side side, const GroupView&, const OperandView& of, std::int64_t i, std::int64_t k,
                     std::byte* to) {
  const OperandView& first = part(product.view.groups.front(), side);
  const std::int64_t block = first.depth > 64 ? 64 : 4, whole = of.depth / block * block;
  const std::int64_t from = first.depth / block * block + k - whole;
  if (k >= whole && i < first.extent && from < first.depth) copy_element(product, side, to, product.element(first, i, from));
}

// The row behind the last one of the group, where it belongs to none that comes later in memory.
void row_behind(ChangedProduct& product, Side side, const GroupView& group, const OperandView& of, std::int64_t i, std::int64_t k,
                std::byte* to) {
  if (i == of.extent - 1 && &group != &product.view.groups.back()) copy_element(product, side, to, product.element(of, i + 1, k));
}

void of_group_before(ChangedProduct& product, Side side, const GroupView& group, const OperandView&, std::int64_t i,
                     std::int64_t k, std::byte* to) {
  const GroupView* other = before(product, group);
  if (other == nullptr) return;
  const OperandView& from = part(*other, side);
  if (i < from.extent && k < from.depth) copy_element(product, side, to, product.element(from, i, k));
}
// Only the last part of the view: the last tile.
void last_of_group_before(ChangedProduct& product, Side side, const GroupView& group, const OperandView& of, std::int64_t i,
                          std::int64_t k, std::byte* to) {
  if (&group == &product.view.groups.back()) of_group_before(product, side, group, of, i, k, to);
}

// A plan that differs in what `change` does; nothing where there is no such plan.
ProductChange with_plan(void (*change)(AccumulationPlan&)) {
  return [change](ChangedProduct& product) {
    AccumulationPlan plan = *product.view.plan;
    change(plan);
    try {
      const AccumulationPlan* found = find_accumulation_plan(plan_line(plan));
      GroupedGemmProblem tried = product.problem;
      tried.plan = found;
      alignas(16) static const std::byte nowhere[16] = {};
      view_of(tried, nowhere);
      product.problem.plan = found;
    } catch (const InvalidArgument&) {}
  };
}

void halve(ChangedProduct& product, Side side, bool first) {
  product.replace(side, [&, side, first](const GroupView& group, std::int64_t, std::int64_t k, const std::byte*, std::byte* to) {
    if ((k < part(group, side).depth / 2) != first) clear(product, side, to);
  });
}

// Sums of the two halves of K, of which the first is rounded to bf16 before the second is added.
void add_in_halves(Request& request) {
  const std::string name = product_output(request.op());
  ChangedCall a(request), b(request);
  const std::vector<std::byte>&first = a.output(name), &second = b.output(name);
  carry_out_changed(a.request, [](ChangedProduct& product) { halve(product, Side::rows, true); });
  carry_out_changed(b.request, [](ChangedProduct& product) { halve(product, Side::rows, false); });
  spoil_result(request, [&](const Result& result) {
    for (const GroupView& group : result.view.groups) {
      for (std::int64_t e = group.d_offset; e < group.d_offset + group.m * group.n; ++e) {
        const float partial = scalar::decode_bf16(scalar::encode_bf16(at<float>(first.data(), e)));
        put(result.d, e, partial + at<float>(second.data(), e));
      }
    }
  });
}

// The bias as an addend of the sum, which is then rounded once.
void add_bias_to_sum(ChangedProduct& product) {
  GroupedGemmProblem& problem = product.problem;
  if (problem.bias == nullptr || problem.c != nullptr) return;
  const std::size_t size = element_bytes(problem.d_type);
  std::int64_t end = 0;
  for (const GroupView& group : product.view.groups) end = std::max(end, group.d_offset + group.m * group.n);
  std::vector<std::byte>& c = product.own(std::vector<std::byte>(static_cast<std::size_t>(end) * size));
  for (const GroupView& group : product.view.groups) {
    for (std::int64_t i = 0; i < group.m; ++i)
      std::memcpy(c.data() + static_cast<std::size_t>(group.d_offset + i * group.n) * size, group.bias,
                  static_cast<std::size_t>(group.n) * size);
  }
  static const float one = 1;
  problem.c = c.data();
  problem.beta = {&one, 1};
  problem.bias = nullptr;
}

void add_bias_of_first(ChangedProduct& product) {
  GroupedGemmProblem& problem = product.problem;
  if (problem.bias == nullptr) return;
  const std::size_t row = static_cast<std::size_t>(problem.N) * element_bytes(problem.d_type);
  std::vector<std::byte>& all = product.own(std::vector<std::byte>(problem.splits.size() * row));
  for (std::size_t g = 0; g < problem.splits.size(); ++g) std::memcpy(all.data() + g * row, problem.bias, row);
  problem.bias = all.data();
}

bool has_bias(const Request& request) { return request.in.count("bias") != 0; }
bool accumulates(const Request& request) { return request.in.count("main_grad") != 0 || request.in.count("c") != 0; }

void add_element_faults(std::vector<CallFault>& to) {
  add_product_fault(to, "weights_in_other_direction", "dgrad reads the weights as forward has them: [N, K] for [K, N]",
                    product_in_layout("NN"), of_elements(Side::columns, in_other_direction));
  add_product_fault(
      to, "row_behind_group", "the last row of a group is the one behind it",
      [](const Request& request) { return layout_of(request) != "NT"; }, of_elements(Side::rows, row_behind));
  add_product_fault(to, "k_tail_dropped", "what is left over where K is divided among tiles is dropped", always,
                    of_elements(Side::rows, k_tail_zero));
  add_product_fault(to, "k_block_lost", "the loop over K ends after its first 64", always, of_elements(Side::rows, k_block_zero));
  add_product_fault(to, "k_tail_of_first_group", "the tail of K is that of the first group in all groups", always,
                    of_elements(Side::rows, k_tail_of_first));
  add_product_fault(to, "operands_of_group_before",
                    "a tensor map that is not waited for: the first tile of a group reads the operand of the group before",
                    product_in_layout("NT"), of_elements(Side::columns, of_group_before),
                    [](const Place& place) { return place.i < 128 && place.j < 128; });
  add_product_fault(
      to, "last_tile_with_weight_before", "the last tile of rows has the weight of the group before",
      [](const Request& request) { return layout_of(request) != "NT"; }, of_elements(Side::columns, last_of_group_before));
  add_product_fault(
      to, "weights_one_group_late", "every group has the weight of the group before",
      [](const Request& request) { return layout_of(request) != "NT"; }, of_elements(Side::columns, of_group_before));
  add_product_fault(to, "e5m2_as_e4m3", "E5M2 codes are read as E4M3", always, [](ChangedProduct& product) {
    for (const Side side : {Side::rows, Side::columns}) {
      if (product.operand(side).type == Format::e5m2) product.operand(side).type = Format::e4m3;
    }
  });
  add_fault(
      to, "partial_sums_in_bf16", "partial sums of two slices of K are rounded to bf16",
      [](const Request& request) {
        return has_product(request) && request.out.at(product_output(request.op())).type == Format::f32;
      },
      add_in_halves);
}

void add_plan_choices(std::vector<CallFault>& to) {
  add_product_fault(to, "split_accumulator_not_forced",
                    "block scaling is summed in one chain, which is rescaled, in place of promotions", product_of_kind("block"),
                    with_plan([](AccumulationPlan& plan) { plan.promotion = Promotion::rescale_by_ratio; }));
  add_product_fault(to, "split_accumulator_forced", "the split accumulator is taken although it is not asked for",
                    product_of_kind("tensor"), with_plan([](AccumulationPlan& plan) {
                      plan.promotion_interval = plan.promotion_interval == 0 ? 128 : 0;
                      plan.promotion = plan.promotion_interval == 0 ? Promotion::none : Promotion::add;
                    }));
  add_product_fault(to, "slices_in_other_order", "partial sums of slices of K are added in another order", always,
                    with_plan([](AccumulationPlan& plan) {
                      if (plan.slices == 3) {
                        plan.merge = SliceMerge::shape_f32;
                        plan.merge_shape = "(0+(1+2))";
                      } else if (plan.slices > 3) {
                        plan.merge = plan.merge == SliceMerge::tree_f32 ? SliceMerge::sequential_f32 : SliceMerge::tree_f32;
                      }
                    }));
  add_product_fault(to, "plan_by_rows",
                    "groups of fewer than 64 rows are multiplied by another kernel, whose sums are one chain that is rescaled",
                    product_of_kind("block"),
                    with_plan([](AccumulationPlan& plan) { plan.promotion = Promotion::rescale_in_turn; }),
                    [](const Place& place) { return place.rows < 64; });
  add_product_fault(
      to, "operands_swapped_by_rows", "groups of fewer than 64 rows swap their operands: scales are applied in the other order",
      product_of_kind("block"), with_plan([](AccumulationPlan& plan) {
        plan.promotion = plan.promotion == Promotion::fma_cols_first ? Promotion::fma_rows_first : Promotion::fma_cols_first;
      }),
      [](const Place& place) { return place.rows < 64; });
}

}  // namespace

void add_operand_faults(std::vector<CallFault>& to) {
  add_element_faults(to);
  add_plan_choices(to);
  add_product_fault(to, "no_bias", "the bias is left out", has_bias,
                    [](ChangedProduct& product) { product.problem.bias = nullptr; });
  add_product_fault(to, "bias_of_first_group", "every group has the bias of the first group", has_bias, add_bias_of_first);
  add_product_fault(to, "bias_before_rounding", "the bias is added before the product is rounded", has_bias, add_bias_to_sum);
  add_product_fault(to, "accumulation_ignored", "the product overwrites what it must be added to", accumulates,
                    [](ChangedProduct& product) {
                      product.problem.beta = {};
                      product.problem.c = nullptr;
                    });
  add_product_fault(to, "added_twice", "a weight gradient that was put off is carried out at once as well: it is added twice",
                    accumulates, [](ChangedProduct& product) {
                      static const float two = 2;
                      product.problem.alpha = {&two, 1};
                    });
}

}  // namespace assay::conformance
