#include "device/support/multiprocessors.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace assay::device {
namespace {

// Functions of the driver, by the version that added them, so that nothing links against libcuda. Null where the driver is older.
template <class Function>
Function driver_function(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t asked = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (asked != cudaSuccess) static_cast<void>(cudaGetLastError());
  return asked == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

constexpr unsigned kGreenContexts = 12040;

int of_context(CUcontext context) {
  using Get = CUresult (*)(CUcontext, CUdevResource*, CUdevResourceType);
  static const Get get = driver_function<Get>("cuCtxGetDevResource", kGreenContexts);
  CUdevResource resource{};
  if (get == nullptr || get(context, &resource, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) return 0;
  return static_cast<int>(resource.sm.smCount);
}

int of_device() {
  int ordinal = 0, count = 0;
  const bool known = cudaGetDevice(&ordinal) == cudaSuccess &&
                     cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, ordinal) == cudaSuccess;
  if (!known) static_cast<void>(cudaGetLastError());  // a call that needs a device reports it
  return known ? count : 0;
}

}  // namespace

int multiprocessors() {
  const int all = of_device();
  if (all == 0) return 0;
  using Current = CUresult (*)(CUcontext*);
  static const Current current = driver_function<Current>("cuCtxGetCurrent", 4000);
  CUcontext context = nullptr;
  if (current == nullptr || current(&context) != CUDA_SUCCESS || context == nullptr) return all;
  const int part = of_context(context);
  return part == 0 ? all : part;
}

int multiprocessors_of(Stream stream) {
  using GreenOf = CUresult (*)(CUstream, CUgreenCtx*);
  using PartOf = CUresult (*)(CUgreenCtx, CUdevResource*, CUdevResourceType);
  static const GreenOf green_of = driver_function<GreenOf>("cuStreamGetGreenCtx", kGreenContexts);
  static const PartOf part_of = driver_function<PartOf>("cuGreenCtxGetDevResource", kGreenContexts);
  CUgreenCtx green = nullptr;
  CUdevResource resource{};
  const bool own = stream != nullptr && green_of != nullptr && part_of != nullptr && green_of(stream, &green) == CUDA_SUCCESS &&
                   green != nullptr && part_of(green, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS;
  return own ? static_cast<int>(resource.sm.smCount) : multiprocessors();
}

}  // namespace assay::device
