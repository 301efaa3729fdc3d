#include "device/tests/mutants/rooms/in_workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/guards.h"

namespace assay::mutants {

std::uint32_t run_in_workspace(const conformance::DeviceCall& call) {
  constexpr std::byte kGuard{0xC3};
  const bool reversed = device::host::reversed;
  const auto size = static_cast<std::size_t>(call.workspace_bytes);
  std::vector<std::byte> bytes(std::max<std::size_t>((size + 255) / 256 * 256, 256), kGuard);  // a multiple of the alignment
  const std::uint32_t words = reversed ? 0x3F80'0000u : 0x9C9C'9C9Cu;
  for (std::size_t at = 0; at < size; ++at) bytes[at] = static_cast<std::byte>(words >> (at % 4 * 8));
  std::vector<std::byte> workspace = fenced_copy(bytes, reversed ? Fence::before : Fence::behind, 0);
  renew_guards(workspace.data(), workspace.size());
  alignas(256) std::uint32_t status = 0;  // as in device memory: it may stand for an array without elements
  call.enqueue(nullptr, workspace.data(), &status);
  const bool kept =
      std::all_of(workspace.begin() + call.workspace_bytes, workspace.end(), [](std::byte each) { return each == kGuard; });
  if (!kept || !guards_hold(workspace.data(), workspace.size())) std::abort();
  return status;
}

}  // namespace assay::mutants
