#include "conformance/backends/device/rule_call.h"

#include <memory>
#include <string>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "conformance/ops/rule_request.h"
#include "conformance/ops/words.h"
#include "device/quantize/by_rule/by_rule.h"

namespace assay::conformance {
DeviceCall rule_call(const Request& request) {
  const RuleProblem problem = rule_problem_of(request);
  for (const char* name : {"preset", "scale_type", "outer"}) request.text_or(name, "");  // repeat what the rule says
  device::QuantizeByRuleCall call;
  call.rule = problem.rule;
  call.output = problem.output;
  call.block = problem.block;
  call.storage = problem.storage;
  call.transposed = problem.transposed;
  const TensorView& x = request.input("x");
  call.columns = code_columns(*call.rule, x);
  call.x_type = x.type;
  call.x = x.data;
  const Splits splits(request);
  call.rows = splits.rows(x.shape[0]);
  const OuterAmax outer = problem.rule->outer;
  const std::int64_t amaxes = outer == OuterAmax::none ? 0 : outer == OuterAmax::row ? x.shape[0] : splits.groups();
  require_amax_of(*call.rule, request);
  if (request.find_input("amax", Format::f32) != nullptr) {
    call.outer_amax = floats(&request.input("amax", Format::f32, amaxes));
  }
  request.refuse_unknown();
  std::vector<std::string> known = {"data", "scale_inv"};
  if (outer != OuterAmax::none) known.push_back("amax");
  refuse_other_outputs(request, known);

  const int bits = bits_of(call.output);
  const Format stored = bits == 6 ? Format::e8m0 : call.output;  // four codes of FP6 in three bytes are plain bytes
  call.output_to.data = request.output("data", stored, x.shape[0] * call.columns * bits / 8);
  call.output_to.scale = output_of_any_size(request, "scale_inv", problem.rule->scale_type);
  if (outer != OuterAmax::none) call.output_to.outer_amax = static_cast<float*>(request.output("amax", Format::f32, amaxes));
  // Made once for the question of the workspace and the launch.
  const auto program = std::make_shared<const device::RuleProgram>(device::rule_program(*call.rule, call.output, call.x_type));
  call.program = program.get();
  Parts parts;
  call.workspace_bytes = device::quantize_by_rule_workspace_bytes(call);
  const std::int64_t own = parts.add(call.workspace_bytes);
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            device::QuantizeByRuleCall ready = call;
            ready.program = program.get();  // which this function keeps
            splits.bind(ready.rows, status);
            ready.workspace = part<void>(workspace, own);
            ready.status = status;
            device::quantize_by_rule(ready, stream);
          }};
}

}  // namespace assay::conformance
