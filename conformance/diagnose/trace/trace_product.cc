// A product: every step of the unit, every promotion, the epilogue. Each partial sum is the scalar layer's for operands that are
// cut at that step.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/diagnose/other_calls/product_element.h"
#include "conformance/diagnose/trace/trace_parts.h"
#include "conformance/judge/compare/compare.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/product.h"
#include "reference/gemm/element_scalar.h"
#include "reference/gemm/quantized_output.h"
#include "reference/types/error.h"

namespace assay::conformance::tracing {
namespace {

// The operand from `k` on, as row `i` of it alone is read. Scales of one byte are copied to `scales`, in one order for compact and
// swizzled ones. False where its scales cannot be cut there.
bool begin_at(OperandView& operand, std::int64_t i, std::int64_t k, std::vector<std::uint8_t>& scales) {
  ScaleView& scale = operand.scale;
  if (k == 0) return true;
  if (operand.type == Format::e2m1 && (k * operand.k_stride) % 2 != 0) return false;
  if (scale.k_block != 0 && k % scale.k_block != 0) return false;
  if (scale.k_block != 0 && scale.type != Format::f32) {
    for (std::int64_t at = k; at < operand.depth; at += scale.k_block) scales.push_back(scale.code(i, at));
    scale.data = scales.data();
    scale.i_block = 0;  // this row's for all
    scale.k_stride = 1;
    scale.swizzled = false;
  } else if (scale.k_block != 0) {
    scale.data = static_cast<const std::byte*>(scale.data) + k / scale.k_block * scale.k_stride * (bits_of(scale.type) / 8);
  }
  operand.data = static_cast<const std::byte*>(operand.data) + bytes_of(operand.type, k * operand.k_stride);
  operand.depth -= k;
  return true;
}

class ProductTrace {
 public:
  ProductTrace(const GroupedGemmView& view, const diagnosis::Place& place, std::vector<TraceLine>& lines)
      : view_(view), plan_(*view.plan), group_(view.groups[place.group]), i_(place.i), j_(place.j), lines_(lines) {}

  void run() {
    say(fmt::format("plan {}", plan_line(plan_)));
    for (std::int64_t slice = 0; slice < plan_.slices; ++slice) {
      const std::int64_t length = plan_.slices == 1 ? group_.depth : plan_.slice_length;
      const std::int64_t begin = std::min(slice * length, group_.depth), end = std::min(begin + length, group_.depth);
      if (plan_.slices > 1) say(fmt::format("slice {} of {}: K {}-{}", slice + 1, plan_.slices, begin, end - 1));
      if (begin < end) trace_slice(begin, end);
    }
    const float acc = scalar::accumulated(view_, group_, i_, j_);
    if (plan_.slices > 1) say("slices merged", acc);
    finish(acc);
  }

 private:
  void say(std::string what) { lines_.push_back({std::move(what), "", ""}); }
  void say(std::string what, float value) { lines_.push_back({std::move(what), shown_f32(value), ""}); }

  // The running value of K in [begin, end), as one chain of steps or as the plan promotes.
  bool sum(std::int64_t begin, std::int64_t end, bool promoted, float& value) const {
    GroupView group = group_;
    std::vector<std::uint8_t> of_rows, of_columns;
    if (!begin_at(group.rows, i_, begin, of_rows) || !begin_at(group.columns, j_, begin, of_columns)) return false;
    group.depth = group.rows.depth = group.columns.depth = end - begin;
    AccumulationPlan plan = plan_;
    plan.slices = 1;
    plan.slice_length = 0;
    plan.merge = SliceMerge::none;
    if (!promoted) plan.promotion = Promotion::none, plan.promotion_interval = 0;
    GroupedGemmView view = view_;
    view.plan = &plan;
    value = scalar::accumulated(view, group, i_, j_);
    return true;
  }

  void trace_slice(std::int64_t begin, std::int64_t end) {
    const std::int64_t interval = plan_.promotion_interval == 0 ? end - begin : plan_.promotion_interval;
    for (std::int64_t k = begin; k < end; k += interval) {
      const std::int64_t last = std::min(k + interval, end);
      scales(k, last);
      steps(k, last);
      float value = 0;
      if (plan_.promotion != Promotion::none && sum(begin, last, true, value))
        say(fmt::format("  K to {}: after promotion", last - 1), value);
    }
  }

  void scales(std::int64_t k, std::int64_t end) {
    if (!has_scales_inside(plan_.promotion)) return;
    say(fmt::format("K {}-{}: scale of the row", k, end - 1), group_.rows.scale.value(i_, k));
    say(fmt::format("K {}-{}: scale of the column", k, end - 1), group_.columns.scale.value(j_, k));
  }

  void steps(std::int64_t begin, std::int64_t end) {
    const std::int64_t length = view_.unit->products_per_step;
    for (std::int64_t k = begin; k < end; k += length) {
      const std::int64_t last = std::min(k + length, end);
      float value = 0;
      // Where a chain goes on through a change of scales, it is given from its start.
      if (!sum(rescales(plan_.promotion) ? k : begin, last, false, value)) return;
      step_scales("row", group_.rows, i_, k, last);
      step_scales("column", group_.columns, j_, k, last);
      say(fmt::format("  K {}-{}: step, {}", k, last - 1, largest(k, last)), value);
    }
  }

  // Scales that enter a step of the unit: their codes, and what they stand for.
  void step_scales(const char* side, const OperandView& operand, std::int64_t i, std::int64_t begin, std::int64_t end) {
    const ScaleView& scale = operand.scale;
    if (view_.unit->scaling == StepScaling::none || scale.k_block == 0) return;
    for (std::int64_t k = begin; k < end; k += scale.k_block) {
      lines_.push_back({fmt::format("  K {}-{}: scale of the {}", k, std::min(k + scale.k_block, end) - 1, side),
                        show_element(scale.type, scale.code(i, k)), ""});
    }
  }

  // The largest product of a step: what the others are aligned to.
  std::string largest(std::int64_t begin, std::int64_t end) const {
    double most = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const double product = std::fabs(element(group_.rows, i_, k) * element(group_.columns, j_, k));
      if (!(product <= most)) most = product;
    }
    return fmt::format("largest product {}", most);
  }
  static double element(const OperandView& operand, std::int64_t i, std::int64_t k) {
    const double value = value_of(operand.type, operand.element(i, k));
    if (operand.scale.data == nullptr || operand.scale.type == Format::f32 || operand.scale.k_block == 0) return value;
    return value * value_of(operand.scale.type, operand.scale.code(i, k));
  }

  void finish(float acc) {
    say("sum", acc);
    if (view_.kind == GemmKind::fp8_per_tensor && group_.depth > 0) {
      say("scale of the row", group_.rows.scale.value(i_, 0));
      say("scale of the column", group_.columns.scale.value(j_, 0));
    }
    if (view_.kind == GemmKind::nvfp4 && group_.depth > 0) {
      say("amax of the operand of the rows", group_.rows.amax);
      say("amax of the operand of the columns", group_.columns.amax);
    }
    say("alpha", group_.alpha);
    say("factor of the sum", scalar::sum_factor(view_, group_));
    if (group_.beta != 0 && view_.c != nullptr) {
      say("beta", group_.beta);
      say_stored("C", view_.c, group_.d_offset + i_ * group_.n + j_);
    }
    if (group_.bias != nullptr) say_stored("bias", group_.bias, j_);
    if (!is_quantized_output(view_.d_type)) return;
    GroupedGemmView in_f32 = view_;
    in_f32.d_type = Format::f32;
    const auto value = std::bit_cast<float>(scalar::element_of_d(in_f32, group_, i_, j_));
    say("value of D before its scale", value);
    say("scale of D", group_.d_scale);
    say("value times scale", value * group_.d_scale);
  }
  void say_stored(const char* what, const void* base, std::int64_t at) {
    Elements stored;
    stored.type = view_.d_type;
    stored.bytes = static_cast<const std::byte*>(base);
    stored.bits = bits_of(view_.d_type);
    lines_.push_back({what, show_element(view_.d_type, stored[at]), ""});
  }

  const GroupedGemmView& view_;
  const AccumulationPlan& plan_;
  const GroupView& group_;
  const std::int64_t i_, j_;
  std::vector<TraceLine>& lines_;
};

}  // namespace

void trace_product(const Request& request, std::int64_t at, std::vector<TraceLine>& lines) {
  visit_product(request, [&](const GroupedGemmProblem& problem, void* d) {
    const GroupedGemmView view = view_of(problem, d);
    const auto place = diagnosis::place_of(view, at);
    require(place.has_value(), "element", at, "one of a group: rows of no group are not computed");
    ProductTrace(view, *place, lines).run();
  });
}

}  // namespace assay::conformance::tracing
