#pragma once
// A grouped_gemm request of the suite through the emulated GEMM on the host.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/backends/device/gemm_request.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "device/emulated_gemm/problem.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "reference/types/tensor.h"

namespace assay::conformance {

// D of the request that `problem` is, every byte of it poisoned.
inline std::vector<std::byte>& poisoned_d(Case& problem) {
  const OutputSpec spec = outputs_of(Request::of(problem)).at(0);
  Tensor& d = problem.out["d"] = make_tensor(spec.type, spec.shape);
  poison(d);
  return d.bytes;
}

// Memory of a call in whole blocks, aligned as the device's. What it holds at first is nothing that a call may count on.
struct HostMemory {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  std::vector<Block> blocks;
  explicit HostMemory(std::int64_t bytes) : blocks(static_cast<std::size_t>(bytes / 256 + 1)) {
    std::memset(blocks.data(), device::host::reversed ? 0 : 0xA5, blocks.size() * sizeof(Block));
    std::memset(&blocks.back(), 0xA5, sizeof(Block));
  }
  // Ends the program where something was stored behind these bytes.
  ~HostMemory() {
    for (const std::byte each : blocks.back().bytes) {
      if (each == std::byte{0xA5}) continue;
      std::fprintf(stderr, "host_gemm: a store behind the workspace\n");
      std::abort();
    }
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

struct HostGemm {
  std::uint32_t status = 0;
  std::string kernel;  // that a device would run
};

// The weights of a call, and D of layout NT, in lists of pointers: a buffer for each group.
class HostLists {
 public:
  // Weights whose groups are no multiple of 16 bytes stay where they are: a buffer begins at one.
  void take(device::GroupedGemmCall& call, Case& problem) {
    if (call.layout == GemmLayout::NT) {
      Tensor& d = problem.out.at("d");
      c_ = call.c;  // D is C
      if (c_ != nullptr) std::memcpy(d.bytes.data(), c_, d.bytes.size());
      fill(d_, call.d, d, call.rows.groups);
      call.d_list = d_.data(), call.d = nullptr, call.c = nullptr;
      return;
    }
    const bool scaled = call.w.scale_inv != nullptr;
    const std::string storage = !scaled ? "w" : call.w.columnwise ? "w_columnwise_" : "w_rowwise_";
    const Tensor& codes = problem.in.at(scaled ? storage + "data" : storage);
    if (codes.bytes.empty() || codes.bytes.size() % (16 * static_cast<std::size_t>(call.rows.groups)) != 0) return;
    fill(data_, call.w.data, codes, call.rows.groups);
    if (scaled) fill(scales_, call.w.scale_inv, problem.in.at(storage + "scale_inv"), call.rows.groups);
    call.w.data_list = data_.data(), call.w.data = nullptr;
    call.w.scale_inv_list = scaled ? scales_.data() : nullptr, call.w.scale_inv = nullptr;
  }

  // After a call that wrote nothing: poison again in place of C.
  void take_c_away(Tensor& d) const {
    if (c_ != nullptr && std::memcmp(d.bytes.data(), c_, d.bytes.size()) == 0) poison(d);
  }

 private:
  template <class Pointer>
  static void fill(std::vector<Pointer>& list, Pointer all, const Tensor& tensor, int groups) {
    auto* const bytes = static_cast<std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>*>(all);
    for (int t = 0; t < groups; ++t)
      list.push_back(bytes + tensor.bytes.size() / static_cast<std::size_t>(groups) * static_cast<std::size_t>(t));
  }

  std::vector<const void*> data_, scales_;
  std::vector<void*> d_;
  const void* c_ = nullptr;
};

// Computes D of `problem` by the generic kernel or a fast one, under the plan of the request or of the table; with `lists` through
// HostLists. Errors: those of the library; NotSupported where no fast kernel takes the call.
inline HostGemm gemm_on_host(Case& problem, bool lists = false,
                             device::emulated::Route route = device::emulated::Route::generic) {
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
  HostLists buffers;
  if (lists) buffers.take(ready, problem);
  done.kernel = device::emulated::kernel_name(ready, arithmetic);
  if (route == device::emulated::Route::fastest && done.kernel == "generic") throw NotSupported("no fast kernel takes the call");
  device::emulated::grouped_gemm_by(route, ready, arithmetic, nullptr);
  done.status = status[0];
  if (lists && done.status != 0) buffers.take_c_away(problem.out.at("d"));
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
