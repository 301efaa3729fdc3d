#include "conformance/backends/device/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "conformance/backends/device/cuda_context.h"
#include "conformance/ops/request.h"
#include "conformance/ops/schema_check.h"
#include "device/support/launch_check.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

void close(assay_context* context) {
  const std::unique_ptr<CudaContext> closed(&of(context));
  free_all(*closed);
}

const char* last_error(assay_context* context) {
  return context == nullptr ? cuda_open_error().c_str() : of(context).error.c_str();
}

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
  return guarded(context, [&](CudaContext& at) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, at.device), "ask for the device");
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "ask for the CUDA version");
    check(cudaDriverGetVersion(&driver), "ask for the driver's CUDA version");
    std::snprintf(info->name, sizeof info->name, "%.127s", properties.name);
    std::snprintf(info->architecture, sizeof info->architecture, "sm%d%d", properties.major, properties.minor);
    const std::string of_driver = driver_version(), more = at.calls->software();
    std::snprintf(info->software, sizeof info->software, "CUDA %s, driver%s%s (CUDA %s)%s%s", cuda_version(runtime).c_str(),
                  of_driver.empty() ? "" : " ", of_driver.c_str(), cuda_version(driver).c_str(), more.empty() ? "" : ", ",
                  more.c_str());
    info->multiprocessors = properties.multiProcessorCount;
    info->memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  });
}

assay_status allocate(assay_context* context, std::int64_t bytes, void** data) {
  return guarded(context, [&](CudaContext& at) {
    *data = at.memory->allocate(bytes);
    if (*data == nullptr) throw CudaFailure(cudaErrorMemoryAllocation, "allocate " + std::to_string(bytes) + " bytes");
  });
}
void release(assay_context* context, void* data) {
  guarded(context, [&](CudaContext& at) { at.memory->release(data); });
}

assay_status copy_to_device(assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
  return guarded(context, [&](CudaContext&) {
    if (bytes > 0)
      check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, of(stream)), "copy to the device");
  });
}
assay_status copy_to_host(assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
  return guarded(context, [&](CudaContext&) {
    if (bytes > 0)
      check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, of(stream)), "copy to the host");
  });
}
assay_status fill(assay_context* context, assay_stream* stream, void* data, std::uint8_t value, std::int64_t bytes) {
  return guarded(context, [&](CudaContext&) {
    if (bytes > 0) check(cudaMemsetAsync(data, value, static_cast<std::size_t>(bytes), of(stream)), "fill");
  });
}

assay_status stream_create(assay_context* context, assay_stream** stream) {
  return guarded(context, [&](CudaContext&) {
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "create a stream");
    *stream = reinterpret_cast<assay_stream*>(made);
  });
}
void stream_destroy(assay_context* context, assay_stream* stream) {
  guarded(context, [&](CudaContext&) { cudaStreamDestroy(of(stream)); });
}

// Waits by polling, so that a hanging kernel does not hang the caller. False: time ran out.
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
  const assay_status status = guarded(context, [&](CudaContext& at) {
    in_time = wait(of(stream), timeout_ms);
    if (!in_time) {
      at.memory->stop_reuse();
      at.error = "work is still pending after " + std::to_string(timeout_ms) + " ms";
      return;
    }
    if (!at.status_in_doubt) return;
    check(cudaMemcpyAsync(at.status_read, at.status, sizeof *at.status, cudaMemcpyDeviceToHost, of(stream)),
          "read the status word");
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
  return guarded(context, [&](CudaContext&) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "create an event");
    *event = reinterpret_cast<assay_event*>(made);
  });
}
void event_destroy(assay_context* context, assay_event* event) {
  guarded(context, [&](CudaContext&) { cudaEventDestroy(of(event)); });
}
assay_status event_record(assay_context* context, assay_event* event, assay_stream* stream) {
  return guarded(context, [&](CudaContext&) { check(cudaEventRecord(of(event), of(stream)), "record an event"); });
}
assay_status event_elapsed(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds) {
  return guarded(context, [&](CudaContext&) {
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, of(start), of(stop)), "read events");
    *milliseconds = elapsed;
  });
}

// Per thread: other contexts may allocate at the same time.
constexpr cudaStreamCaptureMode kCapture = cudaStreamCaptureModeThreadLocal;

assay_status capture_begin(assay_context* context, assay_stream* stream) {
  return guarded(context, [&](CudaContext&) { check(cudaStreamBeginCapture(of(stream), kCapture), "begin a capture"); });
}
assay_status capture_end(assay_context* context, assay_stream* stream, assay_graph** graph) {
  return guarded(context, [&](CudaContext&) {
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
  return guarded(context, [&](CudaContext& at) {
    at.status_in_doubt = true;
    check(cudaGraphLaunch(of(graph), of(stream)), "launch a graph");
  });
}
void graph_destroy(assay_context* context, assay_graph* graph) {
  guarded(context, [&](CudaContext&) { cudaGraphExecDestroy(of(graph)); });
}

// The call as the library makes it, after the checks that every backend makes. Those of the op come first: their messages say more.
DeviceCall prepared(CudaContext& at, const assay_call* call) {
  require(call != nullptr, "call", "null", "an address");
  DeviceCall made = at.calls->prepare(*call);
  check_against_schema(Request::of(*call));
  return made;
}

// The call is captured and the graph discarded: the library makes all its checks, and nothing is executed.
assay_status supports(assay_context* context, const assay_call* call) {
  return guarded(context, [&](CudaContext& at) {
    require(call != nullptr, "call", "null", "an address");
    at.calls->look(*call);
    const DeviceCall made = prepared(at, call);
    void* own = nullptr;
    if (made.workspace_bytes > call->workspace_bytes) {
      own = at.memory->allocate(made.workspace_bytes);
      if (own == nullptr)
        throw CudaFailure(cudaErrorMemoryAllocation,
                          "allocate a workspace of " + std::to_string(made.workspace_bytes) + " bytes");
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
  return guarded(context, [&](CudaContext& at) {
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
  return guarded(context, [&](CudaContext& at) { give(at.calls->algorithms(*call), algorithms, capacity, count); });
}
assay_status list_axes(assay_context* context, assay_axis* axes, std::int32_t capacity, std::int32_t* count) {
  return guarded(context, [&](CudaContext& at) { give(at.calls->axes(), axes, capacity, count); });
}
assay_status set_axis(assay_context* context, const char* name, const char* value) {
  return guarded(context, [&](CudaContext& at) { at.calls->set_axis(name, value); });
}

assay_status workspace_bytes(assay_context* context, const assay_call* call, std::int64_t* bytes) {
  return guarded(context, [&](CudaContext& at) { *bytes = prepared(at, call).workspace_bytes; });
}

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  return guarded(context, [&](CudaContext& at) {
    const DeviceCall made = prepared(at, call);
    require(stream != nullptr, "stream", "null", "a stream of this context");
    require(call->workspace_bytes >= made.workspace_bytes, "workspace_bytes", call->workspace_bytes,
            "at least " + std::to_string(made.workspace_bytes));
    if (made.workspace_bytes > 0) {
      require(call->workspace != nullptr && reinterpret_cast<std::uintptr_t>(call->workspace) % 256 == 0, "workspace",
              call->workspace, "256-byte aligned device memory");
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
  check(cudaDeviceGetAttribute(&architecture.multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "ask for the multiprocessors");
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
