// Opening a context on a CUDA device, in steps, and closing what was opened.

#include <algorithm>
#include <charconv>
#include <new>
#include <vector>

#include "conformance/backends/device/cuda_context.h"
#include "conformance/ops/request.h"
#include "device/layout/offsets.h"
#include "device/support/error.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Errors after which the process cannot use the device any more.
bool is_final(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

std::string known_options(const CudaBackend& backend) {
  return std::string("device=N, pool=on|off") + (*backend.options != '\0' ? ", " : "") + backend.options +
         ", separated by commas";
}

struct CudaOptions {
  int device = 0;
  bool pool = true;
  std::vector<std::string> own;  // the backend's
};

CudaOptions options_of(const CudaBackend& backend, const std::string& text) {
  CudaOptions options;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    if (item == "pool=off" || item == "pool=on") {
      options.pool = item == "pool=on";
    } else if (item.starts_with("device=")) {
      const char* last = item.data() + item.size();
      const auto read = std::from_chars(item.data() + 7, last, options.device);
      require(read.ec == std::errc{} && read.ptr == last && options.device >= 0, "--backend-options device", item,
              "a number of 0 or more");
    } else if (item.find('=') != std::string::npos) {
      options.own.push_back(item);
    } else {
      throw assay::InvalidArgument("--backend-options", "'" + text + "'", known_options(backend));
    }
  }
  return options;
}

// Makes device number `number` the thread's. Errors: NotSupported without a device, InvalidArgument for a number too large.
void choose_device(int number) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    cudaGetLastError();
    int driver = 0;  // stays 0 where there is no driver
    const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    throw assay::NotSupported(std::string("no CUDA device can be used here: ") + (!has_driver ? "there is no driver"
                                                                                  : error == cudaSuccess
                                                                                      ? "there is none"
                                                                                      : cudaGetErrorString(error)));
  }
  require(number < count, "--backend-options device", number, "below " + std::to_string(count) + ", the number of CUDA devices");
  check(cudaSetDevice(number), "choose the device");
}

// Errors: NotSupported for a device older than sm80.
void check_architecture(int number) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number), "ask for the compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number), "ask for the compute capability");
  if (major < 8) {
    throw assay::NotSupported("CUDA device " + std::to_string(number) + " is sm" + std::to_string(major) + std::to_string(minor) +
                              ": sm80 or newer is needed");
  }
}

// Stream, status word and pinned memory.
void allocate_parts(CudaContext& context, bool pool) {
  context.memory = std::make_unique<DeviceMemory>(pool);
  check(cudaStreamCreateWithFlags(&context.probe, cudaStreamNonBlocking), "create a stream");
  check(cudaMalloc(reinterpret_cast<void**>(&context.status), 256), "allocate the status word");
  check(cudaMallocHost(reinterpret_cast<void**>(&context.status_read), 64), "allocate pinned memory");
  check(cudaMemset(context.status, 0, 256), "clear the status word");
}

// Runs the smallest call there is, to check that this build has code for this device.
void run_smallest_call(CudaContext& context) {
  device::splits_to_offsets(nullptr, 0, 1, reinterpret_cast<std::int64_t*>(context.status) + 1, context.status, context.probe);
  check(cudaStreamSynchronize(context.probe), "run a kernel");
}

}  // namespace

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that the error is not attributed to the next call
  throw CudaFailure(error, doing);
}

assay_status status_of_exception(std::string& error) {
  try {
    throw;
  } catch (const assay::NotSupported& why) {
    error = why.what();
    return ASSAY_NOT_SUPPORTED;
  } catch (const device::NotSupported& why) {
    error = why.what();
    return ASSAY_NOT_SUPPORTED;
  } catch (const assay::InvalidArgument& why) {
    error = why.what();
    return ASSAY_INVALID_ARGUMENT;
  } catch (const device::InvalidArgument& why) {
    error = why.what();
    return ASSAY_INVALID_ARGUMENT;
  } catch (const CudaFailure& why) {
    error = why.what();
    return is_final(why.error())                      ? ASSAY_DEVICE_LOST
           : why.error() == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY
                                                      : ASSAY_FAILED;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    return ASSAY_OUT_OF_MEMORY;
  } catch (const std::exception& why) {
    error = why.what();
    return ASSAY_FAILED;
  }
}

std::string& cuda_open_error() {
  static thread_local std::string text;
  return text;
}

void free_all(CudaContext& context) {
  cudaSetDevice(context.device);
  context.calls.reset();
  if (context.probe != nullptr) cudaStreamDestroy(context.probe);
  cudaFree(context.status);
  cudaFreeHost(context.status_read);
  context.memory.reset();
}

assay_status open_cuda(const CudaBackend& backend, const char* text, assay_context** context) {
  auto opened = std::make_unique<CudaContext>();
  const assay_status status = caught(cuda_open_error(), [&] {
    const CudaOptions options = options_of(backend, text == nullptr ? "" : text);
    opened->device = options.device;
    choose_device(options.device);
    check_architecture(options.device);
    allocate_parts(*opened, options.pool);
    run_smallest_call(*opened);
    opened->calls = backend.open(options.own);
  });
  if (status != ASSAY_OK) {
    free_all(*opened);
    return status;
  }
  *context = reinterpret_cast<assay_context*>(opened.release());
  return ASSAY_OK;
}

}  // namespace assay::conformance
