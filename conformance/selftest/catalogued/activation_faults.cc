// Catalogued faults of an activation in front of a quantization.

#include <utility>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/fault_parts.h"
#include "reference/approximations/approximations.h"
#include "reference/recipes/element_scalar.h"
#include "reference/recipes/swiglu.h"

namespace assay::conformance {
namespace {

// The call without its activation, on x of which element (r, k) is that of `make`, of the given matrix and where gate and up lie.
Perform on_x(float (*make)(const TensorView& given, std::int64_t gate, std::int64_t up)) {
  return [=](Request& request) {
    ChangedCall changed(request);
    const TensorView& given = request.in.at("x");
    TensorView& x = changed.request.in.at("x");
    x.shape[1] /= 2, x.bytes /= 2;
    std::vector<std::byte> made(static_cast<std::size_t>(x.bytes));
    for (std::int64_t r = 0; r < x.shape[0]; ++r) {
      for (std::int64_t k = 0; k < x.shape[1]; ++k) {
        const std::int64_t gate = r * given.shape[1] + k;
        scalar::store(x.type, made.data(), r * x.shape[1] + k, make(given, gate, gate + x.shape[1]));
      }
    }
    changed.replace("x", std::move(made));
    changed.request.attributes.erase("activation");
    changed.carry_out(request);
  };
}
float value_at(const TensorView& given, std::int64_t at) { return scalar::load(given.type, given.data, at); }

}  // namespace

void add_activation_faults(std::vector<CallFault>& to) {
  const When activated = is_op_of("quantize", "activation", "swiglu");
  add_fault(to, "gate_and_up_exchanged", "gate and up of a fused activation are exchanged", activated,
            on_x([](const TensorView& given, std::int64_t gate, std::int64_t up) {
              return scalar::swiglu(given.type, value_at(given, up), value_at(given, gate));
            }));
  add_fault(to, "gate_beside_up", "gate and up of a fused activation are read from neighbouring columns", activated,
            on_x([](const TensorView& given, std::int64_t gate, std::int64_t) {
              const std::int64_t first = gate / given.shape[1] * given.shape[1] + 2 * (gate % given.shape[1]);
              return scalar::swiglu(given.type, value_at(given, first), value_at(given, first + 1));
            }));
  add_fault(to, "silu_not_rounded", "silu is not rounded before it is multiplied", activated,
            on_x([](const TensorView& given, std::int64_t gate, std::int64_t up) {
              const float value = value_at(given, gate);
              return div_full(value, 1 + ex2_approx(-value * 0x1.715476p0f)) * value_at(given, up);
            }));
}

}  // namespace assay::conformance
