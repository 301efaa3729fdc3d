#pragma once
// The bodies behind host_backend.h.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conformance/backends/call_layout.h"
#include "conformance/backends/host_backend.h"
#include "reference/types/error.h"

// The interface leaves these types to the backend. Those here are private to the host backends.
struct assay_context {
  int mode = 0;
  std::string error;
  // Blocks in use, and those that are kept for the next buffer: thousands of cases need the same few sizes.
  std::unordered_map<void*, std::size_t> blocks;
  std::vector<std::pair<void*, std::size_t>> spare;
};
struct assay_graph {
  // A call owns copies of what the caller's structure pointed to; tensor data stay where they are.
  struct Recorded {
    std::deque<std::string> names;
    std::vector<assay_parameter> parameters;
    std::vector<assay_tensor> inputs, outputs;
    assay_call call{};
  };
  std::deque<Recorded> calls;
};
struct assay_stream {
  assay_graph* recording = nullptr;
};
struct assay_event {
  std::chrono::steady_clock::time_point at;
};

namespace assay::conformance::host {

// The reason why open() failed without a context.
inline std::string& open_error() {
  static thread_local std::string text;
  return text;
}

// Runs `body` and turns what it throws into a status and a text.
template <class Body>
assay_status guarded(std::string& error, Body body) {
  try {
    body();
    return ASSAY_OK;
  } catch (const NotSupported& why) {
    error = why.what();
    return ASSAY_NOT_SUPPORTED;
  } catch (const InvalidArgument& why) {
    error = why.what();
    return ASSAY_INVALID_ARGUMENT;
  } catch (const std::bad_alloc&) {
    error = "the host is out of memory";
    return ASSAY_OUT_OF_MEMORY;
  } catch (const std::exception& why) {
    error = why.what();
    return ASSAY_FAILED;
  }
}

// The same on an open context, after a check that no other argument is null.
struct Given {
  const char* name;
  const void* address;
};
template <class Body>
assay_status guarded(assay_context* context, std::initializer_list<Given> given, Body body) {
  return guarded(context == nullptr ? open_error() : context->error, [&] {
    require(context != nullptr, "context", "null", "an open context");
    for (const Given& each : given) require(each.address != nullptr, each.name, "null", "an address");
    body();
  });
}

inline void record(assay_graph& graph, const assay_call& call) {
  assay_graph::Recorded& copy = graph.calls.emplace_back();
  const auto keep = [&](const char* text) { return text == nullptr ? nullptr : copy.names.emplace_back(text).c_str(); };
  copy.parameters = parameter_items(call);
  copy.inputs = input_items(call);
  copy.outputs = output_items(call);
  for (assay_parameter& each : copy.parameters) {
    each.name = keep(each.name);
    each.text = keep(each.text);
  }
  for (assay_tensor& each : copy.inputs) each.name = keep(each.name);
  for (assay_tensor& each : copy.outputs) each.name = keep(each.name);
  std::memcpy(&copy.call, &call, std::min(call.struct_size, sizeof call));
  copy.call.struct_size = sizeof copy.call;
  copy.call.parameter_size = sizeof(assay_parameter);
  copy.call.tensor_size = sizeof(assay_tensor);
  copy.call.op = keep(call.op);
  copy.call.parameters = copy.parameters.data();
  copy.call.inputs = copy.inputs.data();
  copy.call.outputs = copy.outputs.data();
}

inline const char* last_error(assay_context* context) {
  return context == nullptr ? open_error().c_str() : context->error.c_str();
}

inline void close(assay_context* context) {
  if (context == nullptr) return;
  for (const auto& [data, bytes] : context->spare) std::free(data);
  delete context;
}

inline void describe_host(assay_device_info* info) {
  std::snprintf(info->name, sizeof info->name, "host processor");
#if defined(__x86_64__)
  std::snprintf(info->architecture, sizeof info->architecture, "x86-64");
#elif defined(__aarch64__)
  std::snprintf(info->architecture, sizeof info->architecture, "aarch64");
#else
  std::snprintf(info->architecture, sizeof info->architecture, "host");
#endif
  std::snprintf(info->software, sizeof info->software, "built with %s", __VERSION__);
}
inline assay_status device_info(assay_context* context, assay_device_info* info) {
  return guarded(context, {{"info", info}}, [&] { describe_host(info); });
}

// No process has more address space: a larger size is not requested, since an allocator may end the process.
inline constexpr std::int64_t kMaxAllocated = std::int64_t{1} << 48;

inline assay_status allocate(assay_context* context, std::int64_t bytes, void** data) {
  if (context == nullptr || data == nullptr) return guarded(context, {{"data", data}}, [] {});
  *data = nullptr;
  std::size_t size = 0;
  if (bytes >= 0 && bytes <= kMaxAllocated) {
    size = (static_cast<std::size_t>(bytes) + 4096) / 4096 * 4096;
    for (std::size_t i = 0; i < context->spare.size(); ++i) {
      if (context->spare[i].second < size || context->spare[i].second / 4 > size) continue;
      *data = context->spare[i].first;
      size = context->spare[i].second;
      context->spare.erase(context->spare.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    if (*data == nullptr) *data = std::aligned_alloc(4096, size);
  }
  if (*data != nullptr) {
    context->blocks[*data] = size;
    return ASSAY_OK;
  }
  context->error = "the host has no " + std::to_string(bytes) + " bytes";
  return ASSAY_OUT_OF_MEMORY;
}
inline void release(assay_context* context, void* data) {
  if (context == nullptr) return;
  constexpr std::size_t kMax = 8, kLargest = std::size_t{8} << 20;
  const auto found = context->blocks.find(data);
  if (found == context->blocks.end()) return;
  if (found->second <= kLargest) {
    if (context->spare.size() == kMax) {  // the oldest one
      std::free(context->spare.front().first);
      context->spare.erase(context->spare.begin());
    }
    context->spare.emplace_back(data, found->second);
  } else {
    std::free(data);
  }
  context->blocks.erase(found);
}

// `bytes` may be 0 or less: then nothing is copied, and no address is needed.
template <class Body>
assay_status on_memory(assay_context* context, const void* first, const void* second, std::int64_t bytes, Body body) {
  if (bytes <= 0 && context != nullptr) return ASSAY_OK;
  return guarded(context, {{"device memory", first}, {"host memory", second}}, body);
}
inline assay_status copy_to_device(assay_context* context, assay_stream*, void* device, const void* from, std::int64_t bytes) {
  return on_memory(context, device, from, bytes, [&] { std::memcpy(device, from, static_cast<std::size_t>(bytes)); });
}
inline assay_status copy_to_host(assay_context* context, assay_stream*, void* to, const void* device, std::int64_t bytes) {
  return on_memory(context, device, to, bytes, [&] { std::memcpy(to, device, static_cast<std::size_t>(bytes)); });
}
inline assay_status fill(assay_context* context, assay_stream*, void* device, std::uint8_t value, std::int64_t bytes) {
  return on_memory(context, device, device, bytes, [&] { std::memset(device, value, static_cast<std::size_t>(bytes)); });
}

inline assay_status stream_create(assay_context* context, assay_stream** stream) {
  return guarded(context, {{"stream", stream}}, [&] { *stream = new assay_stream; });
}
inline void stream_destroy(assay_context*, assay_stream* stream) { delete stream; }
inline assay_status synchronize(assay_context* context, assay_stream* stream, std::int64_t) {
  return guarded(context, {{"stream", stream}}, [] {});
}

inline assay_status event_create(assay_context* context, assay_event** event) {
  return guarded(context, {{"event", event}}, [&] { *event = new assay_event; });
}
inline void event_destroy(assay_context*, assay_event* event) { delete event; }
inline assay_status event_record(assay_context* context, assay_event* event, assay_stream*) {
  return guarded(context, {{"event", event}}, [&] { event->at = std::chrono::steady_clock::now(); });
}
inline assay_status event_elapsed(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds) {
  return guarded(context, {{"start", start}, {"stop", stop}, {"milliseconds", milliseconds}},
                 [&] { *milliseconds = std::chrono::duration<double, std::milli>(stop->at - start->at).count(); });
}

inline assay_status capture_begin(assay_context* context, assay_stream* stream) {
  if (context == nullptr || stream == nullptr) return guarded(context, {{"stream", stream}}, [] {});
  if (stream->recording != nullptr) {
    context->error = "the stream is being captured already";
    return ASSAY_INVALID_ARGUMENT;
  }
  stream->recording = new assay_graph;
  return ASSAY_OK;
}
inline assay_status capture_end(assay_context* context, assay_stream* stream, assay_graph** graph) {
  if (context == nullptr || stream == nullptr || graph == nullptr)
    return guarded(context, {{"stream", stream}, {"graph", graph}}, [] {});
  if (stream->recording == nullptr) {
    context->error = "the stream is not being captured";
    return ASSAY_INVALID_ARGUMENT;
  }
  *graph = stream->recording;
  stream->recording = nullptr;
  return ASSAY_OK;
}
inline void graph_destroy(assay_context*, assay_graph* graph) { delete graph; }

inline assay_status workspace_bytes(assay_context* context, const assay_call* call, std::int64_t* bytes) {
  return guarded(context, {{"call", call}, {"bytes", bytes}}, [&] { *bytes = 0; });
}

template <const HostBackend& host>
assay_status open(const char* options, assay_context** context) {
  int mode = 0;
  const assay_status status = guarded(open_error(), [&] {
    require(context != nullptr, "context", "null", "an address");
    host.configure(options == nullptr ? "" : options, mode);
  });
  if (status != ASSAY_OK) return status;
  *context = new assay_context{mode, {}, {}, {}};
  return ASSAY_OK;
}

template <const HostBackend& host>
assay_status supports(assay_context* context, const assay_call* call) {
  return guarded(context, {{"call", call}}, [&] { host.perform(*call, context->mode, true); });
}

template <const HostBackend& host>
assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* numerics) {
  return guarded(context, {{"call", call}, {"numerics", numerics}}, [&] { host.state(*call, *numerics); });
}

template <const HostBackend& host>
assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  return guarded(context, {{"stream", stream}, {"call", call}}, [&] {
    if (stream->recording != nullptr) {
      host.perform(*call, context->mode, true);
      record(*stream->recording, *call);
    } else {
      host.perform(*call, context->mode, false);
    }
  });
}

template <const HostBackend& host>
assay_status graph_launch(assay_context* context, assay_graph* graph, assay_stream* stream) {
  return guarded(context, {{"graph", graph}, {"stream", stream}}, [&] {
    for (const assay_graph::Recorded& recorded : graph->calls) host.perform(recorded.call, context->mode, false);
  });
}

}  // namespace assay::conformance::host

namespace assay::conformance {

template <const HostBackend& host>
const assay_backend* host_table() {
  static const assay_backend table = [] {
    assay_backend made{};
    made.struct_size = sizeof made;
    made.version = ASSAY_BACKEND_VERSION;
    made.name = host.name;
    made.description = host.description;
    made.open = host::open<host>;
    made.close = host::close;
    made.last_error = host::last_error;
    made.device_info = host::device_info;
    made.allocate = host::allocate;
    made.release = host::release;
    made.copy_to_device = host::copy_to_device;
    made.copy_to_host = host::copy_to_host;
    made.fill = host::fill;
    made.stream_create = host::stream_create;
    made.stream_destroy = host::stream_destroy;
    made.synchronize = host::synchronize;
    made.event_create = host::event_create;
    made.event_destroy = host::event_destroy;
    made.event_record = host::event_record;
    made.event_elapsed = host::event_elapsed;
    made.capture_begin = host::capture_begin;
    made.capture_end = host::capture_end;
    made.graph_launch = host::graph_launch<host>;
    made.graph_destroy = host::graph_destroy;
    made.supports = host::supports<host>;
    made.numerics = host::numerics<host>;
    made.workspace_bytes = host::workspace_bytes;
    made.execute = host::execute<host>;
    made.parameter_size = sizeof(assay_parameter);
    made.tensor_size = sizeof(assay_tensor);
    made.algorithm_size = sizeof(assay_algorithm);
    made.axis_size = sizeof(assay_axis);
    return made;
  }();
  return &table;
}

}  // namespace assay::conformance
