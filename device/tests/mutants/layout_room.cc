// Offsets of groups, block scales between compact and 128x4 order, the check of splits by itself; and sums of columns, which find their
// groups by the same table.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/quantize_call.h"
#include "conformance/backends/device/rule_call.h"
#include "conformance/backends/device/token_call.h"
#include "device/dequantize/dequantize.h"
#include "device/quantize/delayed_scaling.h"
#include "device/support/call_device.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/room.h"

namespace {
[[noreturn]] void unknown() { throw std::logic_error("this op is not here"); }
}  // namespace

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

void dequantize(const DequantizeCall&, Stream) { unknown(); }
void update_delayed_scaling(const DelayedUpdateCall&, Stream) { unknown(); }

}  // namespace assay::device

namespace assay::conformance {

DeviceCall quantize_call(const Request&, std::int64_t) { unknown(); }
DeviceCall rule_call(const Request&) { unknown(); }
DeviceCall permute_call(const Request&) { unknown(); }
DeviceCall unpermute_call(const Request&) { unknown(); }

}  // namespace assay::conformance

namespace assay::mutants {

const char* const kRoom = "layout";

const char* const kLines[] = {nullptr};

bool takes(const conformance::CaseLine& line) {
  constexpr std::string_view kOps[] = {
      "swizzle", "unswizzle", "grouped_dbias", "splits_to_offsets", "splits_to_offsets_multi", "splits_to_offsets_2d"};
  return std::find(std::begin(kOps), std::end(kOps), line.op) != std::end(kOps);
}

// Each lies where its elements may; words of compact scales are loaded whole, 16 bytes of swizzled ones, and x by 16 or one by one.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "swizzled") return 0;
  return name == "compact" ? 4 : static_cast<std::size_t>(stored_bytes(tensor.type));
}

namespace {

std::uint32_t status_of(const conformance::Request& request) {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  constexpr std::byte kGuard{0xC3};
  const conformance::DeviceCall call = conformance::device_call(request);
  std::vector<Block> workspace(static_cast<std::size_t>((call.workspace_bytes + 255) / 256 + 1));
  std::byte* const first = reinterpret_cast<std::byte*>(workspace.data());
  std::byte* const behind = first + call.workspace_bytes;
  std::byte* const end = reinterpret_cast<std::byte*>(workspace.data() + workspace.size());
  std::fill(first, behind, device::host::reversed ? std::byte{0xFF} : std::byte{0x5A});
  std::fill(behind, end, kGuard);
  std::uint32_t status = 0;
  call.enqueue(nullptr, workspace.data(), &status);
  if (!std::all_of(behind, end, [](std::byte each) { return each == kGuard; })) std::abort();  // stored behind the workspace
  return status;
}

}  // namespace

// The second call is made once more without outputs: its splits are checked all the same, but an output that is too narrow for its
// sums is no longer there.
std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;
  conformance::Request request = conformance::Request::of(problem);
  const std::uint32_t status = status_of(request);
  if (device::host::reversed) {
    request.out.clear();
    const std::uint32_t checked = status_of(request);
    if (status != device::kStatusOverflow && (checked != 0) != (status != 0)) std::abort();
  }
  return status;
}

}  // namespace assay::mutants
