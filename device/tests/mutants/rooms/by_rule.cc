// Quantization by a scale rule.

#include <cstddef>

#include "conformance/backends/device/rule_call.h"
#include "device/support/call_device.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::device {
CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;
}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "by_rule";

// What the catalogue's standard profile has with other sizes only, or not at all.
const char* const kLines[] = {
    // More than 64 groups, 1024 of them with too many rows, and rows that end within a byte or a tile.
    "quantize_by_rule preset=deepgemm block=128x128 splits=70x3 K=16 seed=64001",
    "quantize_by_rule preset=te splits=1024x1 K=16 seed=64002 fault=excess_rows",
    "quantize_by_rule preset=te transposed=1 splits=5,0,17,9 K=144 seed=64004 fault=excess_rows",
    "quantize_by_rule preset=torchao.mx_floor otype=e2m1 transposed=1 splits=2,0,6 K=33 seed=64020",
    // Blocks of five columns, and one row that is transposed.
    "quantize_by_rule preset=te block=1x5 R=9 K=40 seed=64003", "quantize_by_rule preset=te transposed=1 R=1 K=2048 seed=64021",
    // Largest values beside powers of two: of every exponent, and subnormal.
    "quantize_by_rule preset=vllm.group.ue8m0.log2 x_type=f32 R=128 K=1024 data=adversarial_amax seed=64033",
    "quantize_by_rule preset=microxcaling R=9 K=160 data=full_exponent seed=64031",
    "quantize_by_rule preset=torchao.mx_rceil x_type=f32 R=65 K=160 data=near_underflow seed=64032",
    "quantize_by_rule preset=language.log2 R=33 K=72 data=every_special seed=64005",
    "quantize_by_rule preset=language.log2 R=9 K=144 data=subnormals seed=64014", nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize_by_rule"; }

// Every tensor may lie wherever its elements may.
std::size_t begins_past(const std::string&, const Tensor& tensor) { return static_cast<std::size_t>(stored_bytes(tensor.type)); }

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // approximate instructions are predicted for it
  return run_in_workspace(conformance::rule_call(conformance::Request::of(problem)));
}

}  // namespace assay::mutants
