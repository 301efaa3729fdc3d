// What a library may do, and every case must pass: other orders of work, other legal plans, and contents that the contract leaves free.

#include <cstdlib>
#include <memory>

#include "conformance/ops/grouped_layout.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/catalogued/product_parts.h"
#include "reference/gemm/plan.h"
#include "reference/support/on_this_thread.h"

namespace assay::conformance {
namespace {

bool any(const Request&) { return true; }

CallFault benign(std::string name, std::string says, When applies, Perform perform) {
  return {"benign." + std::move(name), "benign", std::move(says), true, std::move(applies), std::move(perform)};
}

void right(Request& request) { answer(request, Layer::fast); }

// Elements of the outputs that the call wrote, one by one.
void each_written(const Request& request, const std::map<std::string, std::vector<std::byte>>& before,
                  const std::function<void(const OutputView&, std::byte*)>& visit) {
  for (const auto& [name, view] : request.out) {
    const std::size_t size = element_bytes(view.type);
    const std::vector<std::byte>& held = before.at(name);
    for (std::size_t at = 0; at + size <= held.size(); at += size) {
      std::byte* const element = static_cast<std::byte*>(view.data) + at;
      if (std::memcmp(element, held.data() + at, size) != 0) visit(view, element);
    }
  }
}

// NaN with another payload, and negative.
void other_nan(Request& request) {
  std::map<std::string, std::vector<std::byte>> before;
  for (const auto& [name, view] : request.out) before[name] = bytes_of(view);
  right(request);
  each_written(request, before, [](const OutputView& view, std::byte* element) {
    if (view.type == Format::f32 && at<float>(element, 0) != at<float>(element, 0)) put(element, 0, std::uint32_t{0xFFC12345});
    const unsigned magnitude =
        view.type == Format::bf16 || view.type == Format::f16 ? at<std::uint16_t>(element, 0) & 0x7FFFu : 0;
    if (magnitude > (view.type == Format::bf16 ? 0x7F80u : 0x7C00u))
      put(element, 0, static_cast<std::uint16_t>(view.type == Format::bf16 ? 0xFFC5 : 0xFE05));
  });
}

// Outputs are made elsewhere and arrive from the end to the beginning; the call reads a copy of its inputs.
void from_end(Request& request) {
  ChangedCall elsewhere(request);
  std::map<std::string, const std::vector<std::byte>*> made;
  for (const auto& [name, view] : request.in) elsewhere.input(name);
  for (const auto& [name, view] : request.out) made[name] = &elsewhere.output(name);
  answer(elsewhere.request, Layer::fast);
  for (const auto& [name, bytes] : made) {
    for (std::size_t i = bytes->size(); i-- > 0;) static_cast<std::byte*>(request.out.at(name).data)[i] = (*bytes)[i];
  }
}

// Tiles of D: those of one colour first, each in the fast layer's arithmetic.
void by_tiles(Request& request) {
  carry_out_changed(
      request, [](ChangedProduct&) {}, [](const Place& place) { return place.tile % 2 == 1; });
  carry_out_changed(
      request, [](ChangedProduct&) {}, [](const Place& place) { return place.tile % 2 == 0; });
}

bool has_free_rows(const Request& request) {
  return request.op() == "grouped_gemm" && layout_of(request) != "NT" && grouped_layout_of(request) != GroupedLayout::splits &&
         has_output("d")(request);
}
void fill_free_rows(Request& request) {
  right(request);
  const OutputView& view = request.out.at("d");
  const std::vector<bool> free = free_rows_of(request);
  for (std::size_t row = 0; row < free.size(); ++row) {
    const auto bytes = static_cast<std::size_t>(view.bytes / view.shape[0]);
    if (free[row]) std::memset(static_cast<std::byte*>(view.data) + row * bytes, 0x5A, bytes);
  }
}

// Where the case asks for no plan.
bool may_choose(const Request& request, const std::string& line) {
  return request.attributes.count("plan") == 0 && !numerics_of(request).plan.empty() && can_follow(request, line);
}
std::function<void(Request&)> follow(const std::string& line) {
  return [line](Request& request) {
    if (may_choose(request, line)) request.attributes["plan"] = line;
  };
}
Perform followed(const std::string& line) {
  return [choose = follow(line)](Request& request) {
    choose(request);
    right(request);
  };
}
// What an unstated product may be (spec exactness-1.2, 1.3): sums of fused steps, narrower than f32 only where the usual unit of the
// architecture is. Flushed subnormals and chains that are multiplied by a ratio of scales have to be stated with their plan.
bool has_to_state_plan(const AccumulationPlan& plan) {
  return plan.subnormals == Subnormals::flushed || rescales(plan.promotion);
}
bool has_to_state_unit(const Request& request, const AccumulationPlan& plan) {
  const TensorCoreUnit &unit = *find_tensor_core_unit(plan.unit), &usual = *find_tensor_core_unit(numerics_of(request).unit);
  const auto is_narrow = [](const TensorCoreUnit& each) { return each.accumulator == Accumulator::e8m13_truncated; };
  return unit.sum != StepSum::fused || unit.accumulator == Accumulator::f16_nearest || (is_narrow(unit) && !is_narrow(usual));
}
void state_no_plan(assay_numerics& stated) { stated.plan[0] = stated.plan_line[0] = '\0'; }
void claim_nothing(assay_numerics& stated) { stated.deterministic = stated.batch_invariant = 0; }

void add_plans(std::vector<CallFault>& to) {
  for (const AccumulationPlan& plan : accumulation_plans()) {
    const std::string line = plan_line(plan), name(plan.name);
    const When applies = [line](const Request& request) { return may_choose(request, line); };
    CallFault stated = benign("plan." + name, "plan " + name + " is followed, as stated", applies, followed(line));
    stated.restate = follow(line);
    to.push_back(stated);
    stated.id = "benign.named." + name;
    stated.says = "plan " + name + " is followed, and stated by its name";
    stated.state = [name](assay_numerics& said) {
      const AccumulationPlan* followed_plan = said.plan_line[0] != '\0' ? find_accumulation_plan(said.plan_line) : nullptr;
      if (followed_plan == nullptr || plan_line(*followed_plan) != plan_line(*find_accumulation_plan(name))) return;
      said.plan_line[0] = '\0';
      std::snprintf(said.plan, sizeof said.plan, "%s", name.c_str());
    };
    to.push_back(stated);
    if (has_to_state_plan(plan)) continue;
    stated.id = "benign.unstated." + name;
    stated.says = "plan " + name + " is followed and only its unit is stated";
    stated.state = state_no_plan;
    to.push_back(stated);
    // Every second call follows it, and the others the usual one.
    const auto turns = std::make_shared<Turns>();
    const When may_be_silent = [line, &plan](const Request& request) {
      return may_choose(request, line) && !has_to_state_unit(request, plan);
    };
    CallFault in_turn =
        benign("in_turn." + name, "plan " + name + " is followed by every second call; no plan and no determinism is stated",
               may_be_silent, [turns, line, may_be_silent](Request& request) {
                 if (may_be_silent(request) && turns->of(request) % 2 == 0) follow(line)(request);
                 right(request);
               });
    in_turn.state = [](assay_numerics& said) {
      state_no_plan(said);
      said.unit[0] = '\0';
      claim_nothing(said);
    };
    to.push_back(in_turn);
  }
}

}  // namespace

void add_benign_variations(std::vector<CallFault>& to) {
  to.push_back(benign("fast_layer", "the other layer of the reference answers: threads, vectors, tiles", any, right));
  to.push_back(benign("twice", "outputs are written twice, the second time right", any, [](Request& request) {
    answer(request, Layer::scalar);
    right(request);
  }));
  to.push_back(benign("one_thread", "one thread does all the work", any,
                      [](Request& request) { on_this_thread([&] { right(request); }); }));
  to.push_back(benign("from_end", "outputs arrive from the end to the beginning, and inputs were copied before", any, from_end));
  to.push_back(benign("tiles", "the tiles of a product are made in another order", has_product,
                      [](Request& request) { has_product(request) ? by_tiles(request) : right(request); }));
  to.push_back(benign("nan_payload", "NaN has another payload and a sign", any, other_nan));
  to.push_back(benign("free_rows", "rows of D that belong to no group, below the last group's end, hold anything", has_free_rows,
                      [](Request& request) { has_free_rows(request) ? fill_free_rows(request) : right(request); }));
  CallFault& unclaimed =
      to.emplace_back(benign("nothing_claimed", "neither determinism nor batch invariance is claimed", any, right));
  unclaimed.state = claim_nothing;
  CallFault& unsaid = to.emplace_back(benign("nothing_stated", "no plan, no unit and no other property is stated", any, right));
  unsaid.state = [](assay_numerics& stated) {
    state_no_plan(stated);
    stated.unit[0] = '\0';
    stated.keeps_zero_sign = stated.deterministic = stated.batch_invariant = -1;
  };
  const When quantizes = [](const Request& request) {
    return request.op() == "quantize" && request.attributes.count("zero_sign") == 0;
  };
  const auto positive = [quantizes](Request& request) {
    if (quantizes(request)) request.attributes["zero_sign"] = "positive";
  };
  CallFault& zero =
      to.emplace_back(benign("zero_sign", "a quantized -0 becomes +0, as stated", quantizes, [positive](Request& request) {
        positive(request);
        right(request);
      }));
  zero.restate = positive;
  add_plans(to);
}

}  // namespace assay::conformance
