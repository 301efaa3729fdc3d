#include "device/support/device_code.h"

#include <cuda_runtime.h>

namespace assay::device {
namespace {

// Every kernel of the library is built for the same architectures.
__global__ void probe() {}

}  // namespace

std::string missing_device_code() {
  int device = 0, major = 0, minor = 0;
  cudaFuncAttributes attributes{};
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
  const cudaError_t found = known ? cudaFuncGetAttributes(&attributes, probe) : cudaSuccess;
  static_cast<void>(cudaGetLastError());  // this query must not cause an error of a later call
  // Other errors do not concern device code; the next call reports them.
  if (found != cudaErrorNoKernelImageForDevice && found != cudaErrorInvalidDeviceFunction &&
      found != cudaErrorUnsupportedPtxVersion)
    return "";
  const std::string number = std::to_string(10 * major + minor);
  return "this build has device code for " ASSAY_DEVICE_CODE ", and none that runs on sm" + number +
         ": build with ASSAY_CUDA_ARCHITECTURES=" + number + "-real";
}

}  // namespace assay::device
