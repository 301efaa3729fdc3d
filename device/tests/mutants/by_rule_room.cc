// Quantization by a scale rule.

#include <cstddef>

#include "conformance/backends/device/rule_call.h"
#include "device/support/call_device.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/in_workspace.h"
#include "device/tests/mutants/room.h"

namespace assay::device {
CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;
}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "by_rule";

const char* const kLines[] = {nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize_by_rule"; }

// Every tensor may lie wherever its elements may.
std::size_t begins_past(const std::string&, const Tensor& tensor) { return static_cast<std::size_t>(stored_bytes(tensor.type)); }

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // approximate instructions are predicted for it
  return run_in_workspace(conformance::rule_call(conformance::Request::of(problem)));
}

}  // namespace assay::mutants
