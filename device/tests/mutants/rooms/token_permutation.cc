// Permutation of tokens, and back.

#include <algorithm>
#include <cstddef>

#include "conformance/backends/device/token_call.h"
#include "device/support/call_device.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "token_permutation";
const char* const kLines[] = {nullptr};

bool takes(const conformance::CaseLine& line) { return line.op == "permute" || line.op == "unpermute"; }

std::size_t begins_past(const std::string&, const Tensor&) { return 0; }

std::uint32_t run(Case& problem) {
  alignas(256) static std::byte workspace[1024];
  std::fill(std::begin(workspace), std::end(workspace), std::byte{0xFF});
  std::uint32_t status = 0;
  const conformance::Request request = conformance::Request::of(problem);
  const conformance::DeviceCall call =
      problem.op == "permute" ? conformance::permute_call(request) : conformance::unpermute_call(request);
  call.enqueue(nullptr, workspace, &status);
  return status;
}

}  // namespace assay::mutants
