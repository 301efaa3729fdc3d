// Faults of the tables of plans and units: a backend that states a row and computes with its neighbour.

#include <cmath>

#include "conformance/backends/stated_plan.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/call_parts.h"
#include "reference/arithmetic/unit_table.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

// The plan that the reference follows for the request, or null where the op has none.
const AccumulationPlan* plan_of_request(const Request& request) {
  const Numerics stated = numerics_of(request);
  return stated.plan.empty() ? nullptr : find_accumulation_plan(stated.plan);
}

// A call that follows another plan than the one that it states.
CallFault other_plan(std::string id, std::string family, std::string says, std::function<bool(const AccumulationPlan&)> is_meant,
                     std::function<std::string(const AccumulationPlan&)> change) {
  const auto line_for = [is_meant, change](const Request& request) -> std::string {
    const AccumulationPlan* plan = plan_of_request(request);
    return plan != nullptr && is_meant(*plan) ? change(*plan) : "";
  };
  return {std::move(id),
          std::move(family),
          std::move(says),
          false,
          [line_for](const Request& request) {
            const std::string line = line_for(request);
            return !line.empty() && can_follow(request, line);
          },
          [line_for](Request& request) {
            if (const std::string line = line_for(request); !line.empty()) request.attributes["plan"] = line;
            answer(request, Layer::scalar);
          }};
}

struct PlanChange {
  const char* name;
  void (*change)(AccumulationPlan&);
};
template <class Enum>
Enum next_of(Enum value, Enum last, Enum first) {
  return value == last ? first : static_cast<Enum>(static_cast<std::uint32_t>(value) + 1);
}
constexpr PlanChange kPlanChanges[] = {
    {"promote.twice", [](AccumulationPlan& plan) { plan.promotion_interval *= 2; }},
    {"promote.half", [](AccumulationPlan& plan) { plan.promotion_interval /= 2; }},
    {"promote.one_step_more",
     [](AccumulationPlan& plan) { plan.promotion_interval += find_tensor_core_unit(plan.unit)->products_per_step; }},
    {"promote.never",
     [](AccumulationPlan& plan) {
       plan.promotion_interval = 0;
       plan.promotion = Promotion::none;
     }},
    {"promote.every_128",
     [](AccumulationPlan& plan) {
       plan.promotion_interval = plan.promotion_interval == 0 ? 128 : plan.promotion_interval;
       if (plan.promotion == Promotion::none) plan.promotion = Promotion::add;
     }},
    {"association.next",
     [](AccumulationPlan& plan) {
       if (has_scales_inside(plan.promotion))
         plan.promotion = next_of(plan.promotion, Promotion::rescale_in_turn, Promotion::fma_scales_first);
     }},
    {"association.next_but_one",
     [](AccumulationPlan& plan) {
       for (int i = 0; i < 2 && has_scales_inside(plan.promotion); ++i)
         plan.promotion = next_of(plan.promotion, Promotion::rescale_in_turn, Promotion::fma_scales_first);
     }},
    {"slices.two",
     [](AccumulationPlan& plan) {
       if (plan.slices != 1) return;
       plan.slices = 2;
       plan.slice_length = 128;
       plan.merge = SliceMerge::sequential_f32;
     }},
    {"slices.merge_next",
     [](AccumulationPlan& plan) {
       if (plan.merge != SliceMerge::none) plan.merge = next_of(plan.merge, SliceMerge::tree_f32, SliceMerge::sequential_f32);
     }},
    {"scale_vectors.next",
     [](AccumulationPlan& plan) {
       if (plan.scale_vectors != ScaleVectors::none)
         plan.scale_vectors = next_of(plan.scale_vectors, ScaleVectors::scales_first, ScaleVectors::rows_first);
     }},
    {"epilogue.next",
     [](AccumulationPlan& plan) {
       plan.epilogue = next_of(plan.epilogue, GemmEpilogue::reduce_add_ftz, GemmEpilogue::scaled_alpha_beta);
     }},
    {"widen.f16", [](AccumulationPlan& plan) { plan.widen = plan.widen ? std::optional<Format>() : std::optional(Format::f16); }},
};

// One field of a unit, one more or less. Rows that a rule of the table refuses are no mutants.
struct UnitChange {
  const char* name;
  void (*change)(TensorCoreUnit&, int);
};
constexpr UnitChange kUnitChanges[] = {
    {"products", [](TensorCoreUnit& unit, int by) { unit.products_per_step += by; }},
    {"products_doubled",
     [](TensorCoreUnit& unit, int by) {
       unit.products_per_step = by > 0 ? unit.products_per_step * 2 : unit.products_per_step / 2;
     }},
    {"fraction_bits", [](TensorCoreUnit& unit, int by) { unit.fraction_bits += by; }},
    {"zero_floor", [](TensorCoreUnit& unit, int by) { unit.zero_floor += by; }},
    {"accumulator",
     [](TensorCoreUnit& unit, int by) {
       const auto count = 4, at = static_cast<int>(unit.accumulator) + by;
       unit.accumulator = static_cast<Accumulator>((at + count) % count);
     }},
    {"scaling", [](TensorCoreUnit& unit,
                   int by) { unit.scaling = static_cast<StepScaling>((static_cast<int>(unit.scaling) + by + 4) % 4); }},
    {"execution",
     [](TensorCoreUnit& unit, int) {
       unit.execution = unit.execution == Execution::native ? Execution::emulated_fp8 : Execution::native;
     }},
    {"group", [](TensorCoreUnit& unit, int) { unit.group = unit.group == 1 ? 16 : 1; }},
    {"chains", [](TensorCoreUnit& unit, int by) { unit.chains += by; }},
    {"joined_bits", [](TensorCoreUnit& unit, int by) { unit.joined_bits += by; }},
    {"far_c", [](TensorCoreUnit& unit, int) { unit.drops_far_c = !unit.drops_far_c; }},
    {"flush", [](TensorCoreUnit& unit, int by) { unit.flush = static_cast<Flush>((static_cast<int>(unit.flush) + by + 3) % 3); }},
};

bool add_row(const TensorCoreUnit& unit, std::string name, const std::string& id) {
  TensorCoreUnit row = unit;
  row.name = name;
  row.measured_by_us = false;
  row.evidence = "a mutant";
  try {
    add_tensor_core_units(to_text(row), id);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

}  // namespace

void add_plan_faults(std::vector<CallFault>& to) {
  for (const AccumulationPlan& plan : accumulation_plans()) {
    for (const PlanChange& each : kPlanChanges) {
      const std::string before = plan_line(plan), name(plan.name);
      AccumulationPlan changed = plan;
      each.change(changed);
      const std::string line = plan_line(changed);
      try {
        if (line == before || find_accumulation_plan(line) == nullptr) continue;
      } catch (const InvalidArgument&) {
        continue;
      }
      to.push_back(other_plan(
          "plan." + name + "." + each.name, "plans", "plan " + name + " is carried out as " + line,
          [name](const AccumulationPlan& of) { return of.name == name; }, [line](const AccumulationPlan&) { return line; }));
    }
  }
}

void add_unit_faults(std::vector<CallFault>& to) {
  const std::vector<TensorCoreUnit> known(tensor_core_units().begin(), tensor_core_units().end());
  for (const TensorCoreUnit& unit : known) {
    for (const UnitChange& each : kUnitChanges) {
      std::string last;
      for (const int by : {1, -1}) {
        TensorCoreUnit changed = unit;
        each.change(changed, by);
        const std::string plain = to_text(changed);
        if (plain == to_text(unit) || plain == last) continue;
        last = plain;
        const std::string id = "unit." + std::string(unit.name) + "." + each.name + (by > 0 ? ".up" : ".down");
        const std::string other = std::string(unit.name) + ".mutant." + each.name + (by > 0 ? ".up" : ".down");
        if (!add_row(changed, other, id)) continue;
        const std::string name(unit.name);
        to.push_back(other_plan(
            id, "units", "unit " + name + " has its field " + each.name + (by > 0 ? " one up" : " one down"),
            [name](const AccumulationPlan& of) { return of.unit == name; },
            [other](const AccumulationPlan& of) {
              AccumulationPlan made = of;
              made.unit = other;
              return plan_line(made);
            }));
      }
    }
  }
}

}  // namespace assay::conformance
