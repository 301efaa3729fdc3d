#include "conformance/generate/scenario_inputs.h"

#include <cstring>

#include "conformance/generate/generator.h"
#include "conformance/generate/replay_steps.h"

namespace assay::conformance {

std::map<std::string, std::string> scenario_memory(const CaseLine& line, const ScenarioCall& call, const Case& inputs) {
  // Integers are drawn for the length of each sum.
  const bool share_operands = line.text("data") != "integers";
  const std::string module = "module " + std::to_string(call.module) + "/";
  const std::string microbatch = module + "microbatch " + std::to_string(call.microbatch) + "/";
  std::map<std::string, std::string> memory;
  const auto use = [&](const std::string& input, const std::string& name) {
    if (inputs.in.count(input) != 0) memory[input] = name;
  };
  if (call.step == "weights") {
    use("noop", module + "noop");
    if (share_operands) use("x", module + "w");
    use("scale", module + "w_scale");
    return memory;
  }
  use("splits", microbatch + "splits");
  if (!is_layer_step(call.step) && !is_product_step(call.step)) {
    const std::string name = call.step == "gradients" ? "dy" : "x";
    if (share_operands) use("x", microbatch + name);
    use("scale", microbatch + name + "_scale");
    return memory;
  }
  for (const auto& [name, tensor] : inputs.in) {
    const bool cache = is_layer_step(call.step) && name.starts_with("w_rowwise");
    if (cache || !share_operands) continue;
    if (name == "w" || name.starts_with("w_")) memory[name] = module + name;
    if (name == "x" || name == "dy" || name.starts_with("x_") || name.starts_with("dy_")) memory[name] = microbatch + name;
  }
  use("noop", module + "noop");
  use("bias", module + "bias");
  return memory;
}

std::vector<Case> scenario_inputs(const CaseLine& line, const Scenario& scenario, int round) {
  const std::int64_t rows = buffer_rows(line);
  const ReplayPlan& plan = scenario.replay;
  const bool rotates = plan.splits && line.text("change") == "rotated";
  std::vector<Case> cases;
  std::map<std::string, Tensor> memory;
  for (const ScenarioCall& call : scenario.calls) {
    const int turn = rotates ? round + call.microbatch + call.module : plan.splits ? round : 0;
    const std::vector<std::int64_t>& splits = scenario.turns[static_cast<std::size_t>(turn) % scenario.turns.size()];
    const std::int64_t seed = call.line.integer("seed");
    Case made = generate(line_of_step(line, call.step, call.microbatch, splits, rows, plan.data ? seed + round : seed));
    if (plan.data != plan.scales) {
      Case scaled = generate(line_of_step(line, call.step, call.microbatch, splits, rows, plan.scales ? seed + round : seed));
      for (auto& [name, tensor] : made.in) {
        if (changes_with_scales(name)) tensor = std::move(scaled.in.at(name));
      }
    }
    if (const auto flag = made.in.find("noop"); flag != made.in.end() && plan.noop) {
      constexpr bool kSkips[] = {false, true, true, false, true};
      const float run = line.real("noop") == 1 ? 0.0f : static_cast<float>(line.real("noop")), skip = 1;
      std::memcpy(flag->second.bytes.data(), kSkips[round % 5] ? &skip : &run, sizeof(float));
    }
    // The first user of shared memory determines its contents.
    for (const auto& [input, name] : scenario_memory(line, call, made)) {
      Tensor& tensor = made.in.at(input);
      const auto [found, fresh] = memory.emplace(name, tensor);
      if (!fresh && found->second.type == tensor.type && found->second.shape == tensor.shape) tensor.bytes = found->second.bytes;
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace assay::conformance
