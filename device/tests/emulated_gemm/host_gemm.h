#pragma once
// A grouped_gemm request of the suite through the emulated GEMM on the host.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/backends/device/gemm_request.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "device/emulated_gemm/problem.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "reference/types/tensor.h"

namespace assay::conformance {

// D of the request that `problem` is, every byte of it poisoned.
inline std::vector<std::byte>& poisoned_d(Case& problem) {
  const OutputSpec spec = outputs_of(Request::of(problem)).at(0);
  Tensor& d = problem.out["d"] = make_tensor(spec.type, spec.shape);
  poison(d);
  return d.bytes;
}

// Memory of a call in whole blocks, aligned as the device's.
struct HostMemory {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  std::vector<Block> blocks;
  explicit HostMemory(std::int64_t bytes) : blocks(static_cast<std::size_t>(bytes / 256 + 1)) {}
};

struct HostGemm {
  std::uint32_t status = 0;
  std::string kernel;  // that a device would run
};

// Computes D of `problem` by the generic kernel, under the plan of the request or of the table. Errors: those of the library.
inline HostGemm gemm_on_host(Case& problem) {
  GemmRequest request(Request::of(problem));
  const AccumulationPlan* plan = request.plan() != nullptr ? request.plan() : plan_for(request.key());
  if (plan == nullptr) throw NotSupported("no plan is known");
  const device::EmulatedArithmetic arithmetic{plan, find_tensor_core_unit(plan->unit)};
  const std::int64_t bytes = device::emulated_gemm_workspace_bytes(request.shape(), arithmetic);
  const std::int64_t own = request.parts().add(bytes);
  HostMemory workspace(request.parts().bytes());
  alignas(256) std::uint32_t status[64] = {};
  device::GroupedGemmCall ready = request.bind(workspace.blocks.data(), status, nullptr);
  ready.workspace = part<void>(workspace.blocks.data(), own);
  ready.workspace_bytes = bytes;
  HostGemm done;
  if (!request.is_wanted()) return done;
  device::emulated::grouped_gemm_by(device::emulated::Route::generic, ready, arithmetic, nullptr);
  done.kernel = device::emulated::kernel_name(ready, arithmetic);
  done.status = status[0];
  return done;
}

// Where the host's D and the reference's are not the same, or "".
inline std::string difference(const CaseLine& line, std::string* kernel = nullptr) {
  Case expected = generate(line), got = generate(line);
  std::vector<std::byte>& want = poisoned_d(expected);
  answer(Request::of(expected), Layer::scalar);
  const std::vector<std::byte>& have = poisoned_d(got);
  const HostGemm done = gemm_on_host(got);
  if (kernel != nullptr) *kernel = done.kernel;
  if (done.status != 0) return "status " + device::describe_status(done.status);
  const auto at = std::mismatch(want.begin(), want.end(), have.begin(), have.end());
  if (at.first == want.end() && at.second == have.end()) return "";
  return "byte " + std::to_string(at.first - want.begin()) + " of " + std::to_string(want.size());
}

}  // namespace assay::conformance
