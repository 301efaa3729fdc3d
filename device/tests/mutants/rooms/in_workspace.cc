#include "device/tests/mutants/rooms/in_workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::mutants {

std::uint32_t run_in_workspace(const conformance::DeviceCall& call) {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  constexpr std::byte kGuard{0xC3};
  std::vector<Block> workspace(static_cast<std::size_t>((call.workspace_bytes + 255) / 256 + 1));
  const std::uint32_t words = device::host::reversed ? 0x3F80'0000u : 0x9C9C'9C9Cu;
  for (Block& block : workspace) {
    for (std::size_t at = 0; at < sizeof block; at += sizeof words) std::memcpy(block.bytes + at, &words, sizeof words);
  }
  std::byte* const behind = reinterpret_cast<std::byte*>(workspace.data()) + call.workspace_bytes;
  std::byte* const end = reinterpret_cast<std::byte*>(workspace.data() + workspace.size());
  std::fill(behind, end, kGuard);
  std::uint32_t status = 0;
  call.enqueue(nullptr, workspace.data(), &status);
  if (!std::all_of(behind, end, [](std::byte each) { return each == kGuard; })) std::abort();
  return status;
}

}  // namespace assay::mutants
