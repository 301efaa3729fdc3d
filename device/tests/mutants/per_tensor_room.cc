// Quantization with one scale for each group, and the update of delayed scaling.

#include <cstddef>
#include <string>

#include "conformance/backends/device/device_call.h"
#include "device/tests/mutants/in_workspace.h"
#include "device/tests/mutants/room.h"
#include "reference/types/format.h"

namespace assay::mutants {

const char* const kRoom = "per_tensor";

const char* const kLines[] = {nullptr};

bool takes(const conformance::CaseLine& line) {
  if (line.op == "delayed_update") return true;
  const std::string recipe = line.op == "quantize" ? line.text("recipe") : "";
  return recipe == "tensor_current" || recipe == "tensor_delayed";
}

// x lies at a multiple of 16. Codes lie anywhere, and where vectors of 16, of 8 and of 4 bytes fit, each in some calls; all else where
// its elements may.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "x") return 0;
  const auto bytes = static_cast<std::size_t>(stored_bytes(tensor.type));
  if (bytes != 1) return bytes;
  constexpr std::size_t kPast[] = {0, 8, 1, 0, 4, 13, 2, 7};
  return kPast[tensor.bytes.size() * 0x9E37'79B1u >> 20 & 7];
}

std::uint32_t run(Case& problem) { return run_in_workspace(conformance::device_call(conformance::Request::of(problem), 1)); }

}  // namespace assay::mutants
