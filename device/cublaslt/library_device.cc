#include "device/cublaslt/library_device.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "device/cublaslt/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/support/compute_capability.h"
#include "device/support/launch_check.h"

namespace assay::device::cublaslt {

std::string version_of(const CublasLtLibrary& library) {
  return "cuBLASLt " + library.version_text() + " (" + library.path() + ")";
}

std::string described(const GroupedGemmCall& call) {
  const GemmSides sides = gemm_sides(call);
  std::string text = std::string("kind ") + kind_name(call.kind) + ", layout " + layout_name(call.layout) + ", " +
                     std::to_string(call.rows.groups) + " groups, " + std::to_string(call.rows.capacity) + " rows, N " +
                     std::to_string(call.N) + ", K " + std::to_string(call.K);
  for (const GemmSide* side : {&sides.rows, &sides.columns}) {
    text += std::string(", ") + side->name + " " + format_name(side->operand->type) +
            (side->operand->columnwise ? " columnwise" : "");
  }
  if (call.kind == GemmKind::fp8_block && call.layout != GemmLayout::NT) {
    text += call.weight_block == WeightBlock::b128x128 ? ", w scaled 128x128" : ", w scaled 1x128";
  }
  return text + ", D " + format_name(call.d_type);
}

void check_library(int status, const char* what, const CublasLtLibrary& library, const GroupedGemmCall* call) {
  if (status == cublaslt::kSuccess) return;
  const char* name = library.entry_points().status_name(status);
  const std::string text = std::string(what) + " of " + version_of(library) + " answers " +
                           (name == nullptr ? "status " + std::to_string(status) : std::string(name)) +
                           (call == nullptr ? std::string() : " to " + described(*call));
  if (status == cublaslt::kNotSupported) throw NotSupported(text);
  throw CudaError(text);
}

// One handle per device for the life of the process: the library's own destruction at exit may come after CUDA's.
Device current_device(const CublasLtLibrary& library) {
  static std::mutex mutex;
  static std::map<int, Device> devices;
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = devices.find(ordinal);
  if (known != devices.end()) return known->second;
  Device device;
  device.ordinal = ordinal;
  device.architecture = compute_capability();
  check_library(library.entry_points().create(&device.handle), "cublasLtCreate", library);
  devices[ordinal] = device;
  return device;
}

}  // namespace assay::device::cublaslt
