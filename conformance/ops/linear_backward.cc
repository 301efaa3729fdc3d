// Ops `linear_dgrad` and `linear_wgrad` (schema 2).

#include <cstring>
#include <vector>

#include "conformance/ops/linear_request.h"
#include "reference/linear/deferred_wgrad.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

struct DgradCall {
  LinearRequest parsed;
  LinearDgrad operands;
};

void parse_dgrad(const Request& request, DgradCall& call) {
  parse_linear(request, "dy", call.parsed);
  const LinearRequest& parsed = call.parsed;
  call.operands.dy = request.input("dy").data;
  call.operands.w = request.input("w", parsed.config.type, parsed.groups() * parsed.shape.N * parsed.shape.K).data;
  call.operands.dy_scale = linear_scales(request, parsed, "dy_scale");
  call.operands.w_scale = linear_scales(request, parsed, "w_scale");
  request.refuse_unknown();
}

std::vector<OutputSpec> dgrad_outputs(const Request& request) {
  DgradCall call;
  parse_dgrad(request, call);
  const LinearRequest& parsed = call.parsed;
  std::vector<OutputSpec> specs{{"dx", parsed.config.type, {parsed.shape.rows, parsed.shape.K}, true}};
  if (parsed.bias) specs.push_back({"dbias", parsed.config.type, {parsed.groups(), parsed.shape.N}});
  return specs;
}

void dgrad_answer(const Request& request, Layer layer) {
  DgradCall call;
  parse_dgrad(request, call);
  const LinearRequest& parsed = call.parsed;
  const LinearSteps& steps = linear_steps(layer);
  void* dx = request.output("dx", parsed.config.type, parsed.shape.rows * parsed.shape.K);
  void* dbias = linear_dbias_output(request, parsed);
  if (dx != nullptr && parsed.plan != nullptr) {
    linear_dgrad_by(multiply_under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, dx);
  } else if (dx != nullptr) {
    steps.dgrad(parsed.config, parsed.shape, call.operands, dx);
  }
  if (dbias != nullptr) steps.dbias(parsed.config, parsed.shape, call.operands.dy, dbias);
}

void dgrad_visit(const Request& request, const Multiply& see) {
  DgradCall call;
  parse_dgrad(request, call);
  linear_dgrad_by(with_linear_plan(call.parsed, see), call.parsed.config, call.parsed.shape, call.operands, linear_nowhere);
}

Numerics dgrad_numerics(const Request& request) {
  DgradCall call;
  parse_dgrad(request, call);
  return linear_numerics(call.parsed, GemmLayout::NN);
}

struct WgradCall {
  LinearRequest parsed;
  LinearWgrad operands;
  bool deferred = false;
  const void* before = nullptr;
  std::int64_t elements() const { return parsed.groups() * parsed.shape.N * parsed.shape.K; }
};

void parse_wgrad(const Request& request, WgradCall& call) {
  parse_linear(request, "dy", call.parsed);
  const LinearRequest& parsed = call.parsed;
  call.operands.dy = request.input("dy").data;
  const TensorView& x = request.input("x", parsed.config.type);
  const std::int64_t width = matrices_in_x(parsed.config.activation) * parsed.shape.K;
  if (x.shape.size() != 2 || x.shape[0] != parsed.shape.rows || x.shape[1] != width) {
    throw InvalidArgument("in/x", describe(x), "a matrix of the rows of dy and " + std::to_string(width) + " columns");
  }
  call.operands.x = x.data;
  call.operands.dy_scale = linear_scales(request, parsed, "dy_scale");
  call.operands.x_scale = linear_scales(request, parsed, "x_scale");
  call.operands.dw_type = request.format_or("dtype_d", Format::f32);
  call.operands.accumulate = request.flag("accumulate");
  call.deferred = request.flag("deferred");
  if (call.operands.accumulate) call.before = request.input("main_grad", call.operands.dw_type, call.elements()).data;
  request.refuse_unknown();
}

std::vector<OutputSpec> wgrad_outputs(const Request& request) {
  WgradCall call;
  parse_wgrad(request, call);
  const LinearRequest& parsed = call.parsed;
  std::vector<OutputSpec> specs{{"dw", call.operands.dw_type, {parsed.groups() * parsed.shape.N, parsed.shape.K}}};
  if (parsed.bias) specs.push_back({"dbias", parsed.config.type, {parsed.groups(), parsed.shape.N}});
  return specs;
}

// The gradient is computed in a buffer of its own, which starts as `main_grad`, so that an error leaves the output alone.
void wgrad_answer(const Request& request, Layer layer) {
  WgradCall call;
  parse_wgrad(request, call);
  const LinearRequest& parsed = call.parsed;
  const LinearSteps& steps = linear_steps(layer);
  void* dw = request.output("dw", call.operands.dw_type, call.elements());
  void* dbias = linear_dbias_output(request, parsed);
  if (dw != nullptr) {
    std::vector<std::byte> made(static_cast<std::size_t>(bytes_of(call.operands.dw_type, call.elements())));
    if (call.before != nullptr && !made.empty()) std::memcpy(made.data(), call.before, made.size());
    void* to = made.empty() ? linear_nowhere : made.data();
    if (parsed.plan != nullptr) {
      linear_wgrad_by(multiply_under(*parsed.plan, layer), parsed.config, parsed.shape, call.operands, to);
    } else if (call.deferred && layer == Layer::fast) {
      DeferredWgrad deferred;
      deferred.store(parsed.config, parsed.shape, call.operands, to);
      deferred.backward_dw();
    } else {
      steps.wgrad(parsed.config, parsed.shape, call.operands, to);
    }
    if (!made.empty()) std::memcpy(dw, made.data(), made.size());
  }
  if (dbias != nullptr) steps.dbias(parsed.config, parsed.shape, call.operands.dy, dbias);
}

void wgrad_visit(const Request& request, const Multiply& see) {
  WgradCall call;
  parse_wgrad(request, call);
  std::vector<std::byte> dw(static_cast<std::size_t>(bytes_of(call.operands.dw_type, call.elements())) + 16);
  if (call.before != nullptr && call.elements() > 0) std::memcpy(dw.data(), call.before, dw.size() - 16);
  linear_wgrad_by(with_linear_plan(call.parsed, see), call.parsed.config, call.parsed.shape, call.operands, dw.data());
}

Numerics wgrad_numerics(const Request& request) {
  WgradCall call;
  parse_wgrad(request, call);
  return linear_numerics(call.parsed, GemmLayout::NT);
}

}  // namespace

const Op kLinearDgrad{"linear_dgrad", dgrad_outputs, dgrad_answer, true, dgrad_numerics, "dx", linear_bounds<dgrad_visit>,
                      dgrad_visit};
const Op kLinearWgrad{"linear_wgrad", wgrad_outputs, wgrad_answer, true, wgrad_numerics, "dw", linear_bounds<wgrad_visit>,
                      wgrad_visit};

}  // namespace assay::conformance
