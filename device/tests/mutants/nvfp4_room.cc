// Quantization to NVFP4.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "conformance/backends/device/quantize_call.h"
#include "device/tests/mutants/room.h"

namespace assay::mutants {

const char* const kRoom = "nvfp4";
const char* const kLines[] = {nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "quantize" && line.text("recipe") == "nvfp4"; }

std::uint32_t run(Case& problem) {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  const conformance::DeviceCall call = conformance::quantize_call(conformance::Request::of(problem), 1);
  std::vector<Block> workspace(static_cast<std::size_t>(call.workspace_bytes / 256 + 1));
  for (Block& block : workspace) std::fill(std::begin(block.bytes), std::end(block.bytes), std::byte{0x9C});
  std::uint32_t status = 0;
  call.enqueue(nullptr, workspace.data(), &status);
  return status;
}

}  // namespace assay::mutants
