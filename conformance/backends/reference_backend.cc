// The CPU reference as a backend: the whole interface, answered by conformance/ops.

#include "conformance/backends/built_in.h"
#include "conformance/backends/host_backend.h"
#include "conformance/backends/reference_numerics.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/schema_check.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

void configure_reference(const std::string& options, int& mode) {
  if (options.empty() || options == "layer=fast") {
    mode = static_cast<int>(Layer::fast);
  } else if (options == "layer=scalar") {
    mode = static_cast<int>(Layer::scalar);
  } else {
    throw InvalidArgument("--backend-options", "'" + options + "'", "layer=fast or layer=scalar");
  }
}

void perform_reference(const assay_call& call, int mode, bool dry) {
  if (call.algorithm != -1) throw NotSupported("the reference has one algorithm; pin none");
  const Request request = Request::of(call);
  const std::vector<OutputSpec> outputs = outputs_of(request);
  for (const auto& [name, tensor] : request.out) {
    bool known = false;
    for (const OutputSpec& each : outputs) known = known || each.name == name;
    if (!known) throw NotSupported("op " + request.op() + " has no output '" + name + "' here");
  }
  check_against_schema(request);
  dry ? (void)numerics_of(request) : answer(request, static_cast<Layer>(mode));
}

void state_reference(const assay_call& call, assay_numerics& numerics) { put_reference_numerics(Request::of(call), numerics); }

constexpr HostBackend kReference{"reference", "the CPU reference: every bit of every recipe, on the host", configure_reference,
                                 perform_reference, state_reference};

}  // namespace

const assay_backend* reference_backend() { return host_table<kReference>(); }

}  // namespace assay::conformance
