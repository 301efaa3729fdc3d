#include "conformance/backends/device/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "conformance/backends/device/device_memory.h"
#include "conformance/ops/request.h"
#include "device/layout/offsets.h"
#include "device/support/error.h"
#include "device/support/launch_check.h"
#include "reference/support/error.h"

namespace assay::conformance {
namespace {

// What the interface's opaque types are here.
struct Context {
  int device = 0;
  std::string error;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<CudaCalls> calls;
  cudaStream_t probe = nullptr;          // captures calls to see whether they can be made; carries nothing out
  std::uint32_t* status = nullptr;       // one word in device memory
  std::uint32_t* status_read = nullptr;  // pinned
  bool status_in_doubt = false;          // something ran since the word was last read
};
Context& of(assay_context* context) { return *reinterpret_cast<Context*>(context); }
cudaStream_t of(assay_stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t of(assay_event* event) { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraphExec_t of(assay_graph* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }

// A call of CUDA that failed.
class Failure : public std::runtime_error {
 public:
  Failure(cudaError_t error, const std::string& doing)
      : std::runtime_error(doing + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error)), error_(error) {}
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
};
void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // those that can be cleared must not be taken for a fault of the next call
  throw Failure(error, doing);
}

// Errors after which nothing more can be asked of the process's device.
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

template <class Body>
assay_status caught(std::string& error, Body body) {
  try {
    body();
    return ASSAY_OK;
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
  } catch (const Failure& why) {
    error = why.what();
    return is_final(why.error()) ? ASSAY_DEVICE_LOST : why.error() == cudaErrorMemoryAllocation ? ASSAY_OUT_OF_MEMORY : ASSAY_FAILED;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    return ASSAY_OUT_OF_MEMORY;
  } catch (const std::exception& why) {
    error = why.what();
    return ASSAY_FAILED;
  }
}

// The same for a call on an open context, whose device becomes the thread's.
template <class Body>
assay_status guarded(assay_context* context, Body body) {
  Context& at = of(context);
  return caught(at.error, [&] {
    check(cudaSetDevice(at.device), "choose the device");
    body(at);
  });
}

std::string& open_error() {
  static thread_local std::string text;
  return text;
}

std::string known_options(const CudaBackend& backend) {
  return std::string("device=N, pool=on|off") + (*backend.options != '\0' ? ", " : "") + backend.options + ", separated by commas";
}

struct Options {
  int device = 0;
  bool pool = true;
  std::vector<std::string> own;  // the backend's
};

Options options_of(const CudaBackend& backend, const std::string& text) {
  Options options;
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

// Everything an open context holds; also used for one that did not open to the end.
void free_all(Context& context) {
  cudaSetDevice(context.device);
  context.calls.reset();
  if (context.probe != nullptr) cudaStreamDestroy(context.probe);
  cudaFree(context.status);
  cudaFreeHost(context.status_read);
  context.memory.reset();
}

}  // namespace

assay_status open_cuda(const CudaBackend& backend, const char* text, assay_context** context) {
  auto opened = std::make_unique<Context>();
  const assay_status status = caught(open_error(), [&] {
    const Options options = options_of(backend, text == nullptr ? "" : text);
    opened->device = options.device;
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
      cudaGetLastError();
      int driver = 0;  // stays 0 where there is no driver
      const bool has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
      throw assay::NotSupported(std::string("no CUDA device can be used here: ") +
                                (!has_driver ? "there is no driver" : error == cudaSuccess ? "there is none" : cudaGetErrorString(error)));
    }
    require(options.device < count, "--backend-options device", options.device, "below " + std::to_string(count) + ", the number of CUDA devices");
    check(cudaSetDevice(options.device), "choose the device");
    int major = 0, minor = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, options.device), "ask for the compute capability");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, options.device), "ask for the compute capability");
    if (major < 8) {
      throw assay::NotSupported("CUDA device " + std::to_string(options.device) + " is sm" + std::to_string(major) + std::to_string(minor) +
                                ": sm80 or newer is needed");
    }
    opened->memory = std::make_unique<DeviceMemory>(options.pool);
    check(cudaStreamCreateWithFlags(&opened->probe, cudaStreamNonBlocking), "create a stream");
    check(cudaMalloc(reinterpret_cast<void**>(&opened->status), 256), "allocate the status word");
    check(cudaMallocHost(reinterpret_cast<void**>(&opened->status_read), 64), "allocate pinned memory");
    check(cudaMemset(opened->status, 0, 256), "clear the status word");
    // The smallest call there is, to see that this build has code for this device.
    device::splits_to_offsets(nullptr, 0, 1, reinterpret_cast<std::int64_t*>(opened->status) + 1, opened->status, opened->probe);
    check(cudaStreamSynchronize(opened->probe), "run a kernel");
    opened->calls = backend.open(options.own);
  });
  if (status != ASSAY_OK) {
    free_all(*opened);
    return status;
  }
  *context = reinterpret_cast<assay_context*>(opened.release());
  return ASSAY_OK;
}

namespace {

void close(assay_context* context) {
  const std::unique_ptr<Context> closed(&of(context));
  free_all(*closed);
}

const char* last_error(assay_context* context) { return context == nullptr ? open_error().c_str() : of(context).error.c_str(); }

// "580.159.04", or empty.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::string cuda_version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

assay_status device_info(assay_context* context, assay_device_info* info) {
  return guarded(context, [&](Context& at) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, at.device), "ask for the device");
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "ask for the CUDA version");
    check(cudaDriverGetVersion(&driver), "ask for the driver's CUDA version");
    std::snprintf(info->name, sizeof info->name, "%.127s", properties.name);
    std::snprintf(info->architecture, sizeof info->architecture, "sm%d%d", properties.major, properties.minor);
    const std::string of_driver = driver_version(), more = at.calls->software();
    std::snprintf(info->software, sizeof info->software, "CUDA %s, driver%s%s (CUDA %s)%s%s", cuda_version(runtime).c_str(),
                  of_driver.empty() ? "" : " ", of_driver.c_str(), cuda_version(driver).c_str(), more.empty() ? "" : ", ", more.c_str());
    info->multiprocessors = properties.multiProcessorCount;
    info->memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  });
}

assay_status allocate(assay_context* context, std::int64_t bytes, void** data) {
  return guarded(context, [&](Context& at) {
    *data = at.memory->allocate(bytes);
    if (*data == nullptr) throw Failure(cudaErrorMemoryAllocation, "allocate " + std::to_string(bytes) + " bytes");
  });
}
void release(assay_context* context, void* data) {
  guarded(context, [&](Context& at) { at.memory->release(data); });
}

assay_status copy_to_device(assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
  return guarded(context, [&](Context&) {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, of(stream)), "copy to the device");
  });
}
assay_status copy_to_host(assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
  return guarded(context, [&](Context&) {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, of(stream)), "copy to the host");
  });
}
assay_status fill(assay_context* context, assay_stream* stream, void* data, std::uint8_t value, std::int64_t bytes) {
  return guarded(context, [&](Context&) {
    if (bytes > 0) check(cudaMemsetAsync(data, value, static_cast<std::size_t>(bytes), of(stream)), "fill");
  });
}

assay_status stream_create(assay_context* context, assay_stream** stream) {
  return guarded(context, [&](Context&) {
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "create a stream");
    *stream = reinterpret_cast<assay_stream*>(made);
  });
}
void stream_destroy(assay_context* context, assay_stream* stream) {
  guarded(context, [&](Context&) { cudaStreamDestroy(of(stream)); });
}

// Waits by asking again and again, so that a kernel that hangs does not hang the caller. False: time ran out.
bool wait(cudaStream_t stream, std::int64_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    const cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaSuccess) return true;
    if (error != cudaErrorNotReady) check(error, "wait for the stream");
    const auto waited = Clock::now() - start;
    if (timeout_ms >= 0 && waited > std::chrono::milliseconds(timeout_ms)) return false;
    if (waited > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      std::this_thread::yield();
    }
  }
}

assay_status synchronize(assay_context* context, assay_stream* stream, std::int64_t timeout_ms) {
  bool in_time = true;
  const assay_status status = guarded(context, [&](Context& at) {
    in_time = wait(of(stream), timeout_ms);
    if (!in_time) {
      at.memory->stop_reuse();
      at.error = "work is still pending after " + std::to_string(timeout_ms) + " ms";
      return;
    }
    if (!at.status_in_doubt) return;
    check(cudaMemcpyAsync(at.status_read, at.status, sizeof *at.status, cudaMemcpyDeviceToHost, of(stream)), "read the status word");
    check(cudaStreamSynchronize(of(stream)), "read the status word");
    at.status_in_doubt = false;
    if (*at.status_read == device::kStatusOk) return;
    check(cudaMemsetAsync(at.status, 0, sizeof *at.status, of(stream)), "clear the status word");
    check(cudaStreamSynchronize(of(stream)), "clear the status word");
    throw std::runtime_error("the status word says " + device::describe_status(*at.status_read));
  });
  return in_time ? status : ASSAY_TIMEOUT;
}

assay_status event_create(assay_context* context, assay_event** event) {
  return guarded(context, [&](Context&) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "create an event");
    *event = reinterpret_cast<assay_event*>(made);
  });
}
void event_destroy(assay_context* context, assay_event* event) {
  guarded(context, [&](Context&) { cudaEventDestroy(of(event)); });
}
assay_status event_record(assay_context* context, assay_event* event, assay_stream* stream) {
  return guarded(context, [&](Context&) { check(cudaEventRecord(of(event), of(stream)), "record an event"); });
}
assay_status event_elapsed(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds) {
  return guarded(context, [&](Context&) {
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, of(start), of(stop)), "read events");
    *milliseconds = elapsed;
  });
}

// Of the thread: other contexts may allocate at the same time.
constexpr cudaStreamCaptureMode kCapture = cudaStreamCaptureModeThreadLocal;

assay_status capture_begin(assay_context* context, assay_stream* stream) {
  return guarded(context, [&](Context&) { check(cudaStreamBeginCapture(of(stream), kCapture), "begin a capture"); });
}
assay_status capture_end(assay_context* context, assay_stream* stream, assay_graph** graph) {
  return guarded(context, [&](Context&) {
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(of(stream), &captured), "end a capture");
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&made, captured, 0);
    cudaGraphDestroy(captured);
    check(error, "instantiate a graph");
    *graph = reinterpret_cast<assay_graph*>(made);
  });
}
assay_status graph_launch(assay_context* context, assay_graph* graph, assay_stream* stream) {
  return guarded(context, [&](Context& at) {
    at.status_in_doubt = true;
    check(cudaGraphLaunch(of(graph), of(stream)), "launch a graph");
  });
}
void graph_destroy(assay_context* context, assay_graph* graph) {
  guarded(context, [&](Context&) { cudaGraphExecDestroy(of(graph)); });
}

// The call is captured and thrown away: every check of the library is made, and nothing is carried out.
assay_status supports(assay_context* context, const assay_call* call) {
  return guarded(context, [&](Context& at) {
    at.calls->look(*call);
    const DeviceCall made = at.calls->prepare(*call);
    void* own = nullptr;
    if (made.workspace_bytes > call->workspace_bytes) {
      own = at.memory->allocate(made.workspace_bytes);
      if (own == nullptr) throw Failure(cudaErrorMemoryAllocation, "allocate a workspace of " + std::to_string(made.workspace_bytes) + " bytes");
    }
    check(cudaStreamBeginCapture(at.probe, kCapture), "begin a capture");
    const auto end = [&] {
      cudaGraph_t graph = nullptr;
      const cudaError_t error = cudaStreamEndCapture(at.probe, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      if (own != nullptr) at.memory->release(own);
      return error;
    };
    try {
      made.enqueue(at.probe, own != nullptr ? own : call->workspace, at.status);
    } catch (...) {
      end();
      cudaGetLastError();
      throw;
    }
    check(end(), "capture the call");
  });
}

assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* numerics) {
  return guarded(context, [&](Context& at) {
    numerics->unit[0] = numerics->plan[0] = '\0';
    numerics->keeps_zero_sign = 1;
    numerics->deterministic = 1;
    numerics->batch_invariant = 1;
    at.calls->state(*call, *numerics);
  });
}

template <class Item>
void give(const std::vector<Item>& all, Item* items, std::int32_t capacity, std::int32_t* count) {
  *count = static_cast<std::int32_t>(all.size());
  for (std::int32_t i = 0; i < std::min(capacity, *count); ++i) {
    const std::size_t size = items->struct_size;  // the distance to the next
    Item item = all[static_cast<std::size_t>(i)];
    item.struct_size = size;
    std::memcpy(reinterpret_cast<std::byte*>(items) + static_cast<std::size_t>(i) * size, &item, std::min(size, sizeof(Item)));
  }
}

assay_status list_algorithms(assay_context* context, const assay_call* call, assay_algorithm* algorithms, std::int32_t capacity,
                             std::int32_t* count) {
  return guarded(context, [&](Context& at) { give(at.calls->algorithms(*call), algorithms, capacity, count); });
}
assay_status list_axes(assay_context* context, assay_axis* axes, std::int32_t capacity, std::int32_t* count) {
  return guarded(context, [&](Context& at) { give(at.calls->axes(), axes, capacity, count); });
}
assay_status set_axis(assay_context* context, const char* name, const char* value) {
  return guarded(context, [&](Context& at) { at.calls->set_axis(name, value); });
}

assay_status workspace_bytes(assay_context* context, const assay_call* call, std::int64_t* bytes) {
  return guarded(context, [&](Context& at) { *bytes = at.calls->prepare(*call).workspace_bytes; });
}

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  return guarded(context, [&](Context& at) {
    const DeviceCall made = at.calls->prepare(*call);
    require(call->workspace_bytes >= made.workspace_bytes, "workspace_bytes", call->workspace_bytes,
            "at least " + std::to_string(made.workspace_bytes));
    if (made.workspace_bytes > 0) {
      require(call->workspace != nullptr && reinterpret_cast<std::uintptr_t>(call->workspace) % 256 == 0, "workspace", call->workspace,
              "256-byte aligned device memory");
    }
    at.status_in_doubt = true;
    made.enqueue(of(stream), call->workspace, at.status);
  });
}

}  // namespace

void CudaCalls::set_axis(const std::string& name, const std::string&) {
  throw assay::InvalidArgument("axis", "'" + name + "'", "nothing: this backend has no axes");
}

Architecture current_architecture() {
  int device = 0, major = 0, minor = 0;
  Architecture architecture;
  check(cudaGetDevice(&device), "ask for the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "ask for the compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "ask for the compute capability");
  check(cudaDeviceGetAttribute(&architecture.multiprocessors, cudaDevAttrMultiProcessorCount, device), "ask for the multiprocessors");
  architecture.number = major * 10 + minor;
  architecture.name = major == 12 ? "sm120" : major >= 10 ? "sm100" : major == 9 ? "sm90" : minor == 9 ? "sm89" : "sm80";
  return architecture;
}

assay_backend make_cuda_table(const CudaBackend& backend, assay_status (*open)(const char*, assay_context**)) {
  assay_backend made{};
  made.struct_size = sizeof made;
  made.version = ASSAY_BACKEND_VERSION;
  made.name = backend.name;
  made.description = backend.description;
  made.open = open;
  made.close = close;
  made.last_error = last_error;
  made.device_info = device_info;
  made.allocate = allocate;
  made.release = release;
  made.copy_to_device = copy_to_device;
  made.copy_to_host = copy_to_host;
  made.fill = fill;
  made.stream_create = stream_create;
  made.stream_destroy = stream_destroy;
  made.synchronize = synchronize;
  made.event_create = event_create;
  made.event_destroy = event_destroy;
  made.event_record = event_record;
  made.event_elapsed = event_elapsed;
  made.capture_begin = capture_begin;
  made.capture_end = capture_end;
  made.graph_launch = graph_launch;
  made.graph_destroy = graph_destroy;
  made.supports = supports;
  made.numerics = numerics;
  made.workspace_bytes = workspace_bytes;
  made.execute = execute;
  made.parameter_size = sizeof(assay_parameter);
  made.tensor_size = sizeof(assay_tensor);
  made.algorithm_size = sizeof(assay_algorithm);
  made.axis_size = sizeof(assay_axis);
  if (backend.has_algorithms) made.list_algorithms = list_algorithms;
  if (backend.has_axes) {
    made.list_axes = list_axes;
    made.set_axis = set_axis;
  }
  return made;
}

}  // namespace assay::conformance
