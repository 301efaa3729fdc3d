// The functions of a table whose backend is in a worker process.

#include <algorithm>
#include <cstring>

#include "conformance/worker/answers.h"
#include "conformance/worker/call.h"
#include "conformance/worker/remote.h"

namespace assay::conformance::worker {
namespace {

Remote& of(assay_context* context) { return *reinterpret_cast<Remote*>(context); }
template <class T>
T* pointer_in(Remote& remote, const Remote::Answer& answer) {
  T* made = nullptr;
  remote.read(answer, [&](Reader& from) { made = reinterpret_cast<T*>(static_cast<std::uintptr_t>(from.get<std::uint64_t>())); });
  return made;
}
template <class T>
void take(assay_context* context, const Remote::Answer& answer, T& value) {
  reinterpret_cast<Remote*>(context)->read(answer, [&](Reader& from) { value = from.get<T>(); });
}

const char* last_error(assay_context* context) { return of(context).last_error(); }
assay_status allocate(assay_context* context, std::int64_t bytes, void** data) { return of(context).allocate(bytes, data); }
void release(assay_context* context, void* data) { of(context).release(data); }
assay_status copy_to_device(assay_context* context, assay_stream* stream, void* device, const void* host, std::int64_t bytes) {
  return of(context).copy_to_device(stream, device, host, bytes);
}
assay_status copy_to_host(assay_context* context, assay_stream* stream, void* host, const void* device, std::int64_t bytes) {
  return of(context).copy_to_host(stream, host, device, bytes);
}
assay_status fill(assay_context* context, assay_stream* stream, void* device, std::uint8_t value, std::int64_t bytes) {
  of(context).add(Function::fill, [&](Writer& to) {
    to.put(number_of(stream));
    to.put(number_of(device));
    to.put(bytes);
    to.put(value);
  });
  return ASSAY_OK;
}
assay_status synchronize(assay_context* context, assay_stream* stream, std::int64_t timeout_ms) {
  return of(context).synchronize(stream, timeout_ms);
}

// Releases are sent with the next call; a worker that has ended has released everything.
template <Function function, class T>
void give_back(assay_context* context, T* handle) {
  Remote& remote = of(context);
  if (remote.is_usable()) remote.add_quietly(function, [&](Writer& to) { to.put(number_of(handle)); });
}
template <Function function, class T>
assay_status create(assay_context* context, T** handle) {
  const Remote::Answer answer = of(context).ask(function, [](Writer&) {});
  if (answer.status == ASSAY_OK) *handle = pointer_in<T>(of(context), answer);
  return answer.status;
}

assay_status event_record(assay_context* context, assay_event* event, assay_stream* stream) {
  return of(context).ask(Function::event_record, [&](Writer& to) { to.put(number_of(event)), to.put(number_of(stream)); }).status;
}
assay_status event_elapsed(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds) {
  const Remote::Answer answer =
      of(context).ask(Function::event_elapsed, [&](Writer& to) { to.put(number_of(start)), to.put(number_of(stop)); });
  if (answer.status == ASSAY_OK) take(context, answer, *milliseconds);
  return answer.status;
}
assay_status capture_begin(assay_context* context, assay_stream* stream) {
  return of(context).ask(Function::capture_begin, [&](Writer& to) { to.put(number_of(stream)); }).status;
}
assay_status capture_end(assay_context* context, assay_stream* stream, assay_graph** graph) {
  const Remote::Answer answer = of(context).ask(Function::capture_end, [&](Writer& to) { to.put(number_of(stream)); });
  if (answer.status != ASSAY_OK) return answer.status;
  *graph = pointer_in<assay_graph>(of(context), answer);
  if (*graph == nullptr) of(context).fault("capture_end() returned 'ok' and no graph");
  return answer.status;
}
assay_status graph_launch(assay_context* context, assay_graph* graph, assay_stream* stream) {
  return of(context).ask(Function::graph_launch, [&](Writer& to) { to.put(number_of(graph)), to.put(number_of(stream)); }).status;
}

assay_status device_info(assay_context* context, assay_device_info* info) {
  const Remote::Answer answer = of(context).ask(Function::device_info, [&](Writer& to) { to.put(*info); });
  if (answer.status != ASSAY_OK) return answer.status;
  take(context, answer, *info);
  if (const std::string fault = check_answer(*info); !fault.empty()) of(context).fault(fault);
  return ASSAY_OK;
}
assay_status supports(assay_context* context, const assay_call* call) {
  return of(context).ask(Function::supports, [&](Writer& to) { put_call(to, *call); }).status;
}
assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* stated) {
  const Remote::Answer answer = of(context).ask(Function::numerics, [&](Writer& to) { put_call(to, *call), to.put(*stated); });
  if (answer.status != ASSAY_OK) return answer.status;
  take(context, answer, *stated);
  if (const std::string fault = check_answer(*stated); !fault.empty()) of(context).fault(fault);
  return ASSAY_OK;
}
assay_status workspace_bytes(assay_context* context, const assay_call* call, std::int64_t* bytes) {
  const Remote::Answer answer = of(context).ask(Function::workspace_bytes, [&](Writer& to) { put_call(to, *call); });
  if (answer.status == ASSAY_OK) take(context, answer, *bytes);
  return answer.status;
}
assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  return of(context).ask(Function::execute, [&](Writer& to) { to.put(number_of(stream)), put_call(to, *call); }).status;
}

template <class Item>
assay_status list(Remote& remote, const Remote::Answer& answer, Function function, Item* items, std::int32_t capacity,
                  std::int32_t* count) {
  if (answer.status != ASSAY_OK) return answer.status;
  remote.read(answer, [&](Reader& from) {
    *count = from.get<std::int32_t>();
    if (const std::string fault = check_count(name_of(function), *count); !fault.empty()) remote.fault(fault);
    for (std::int32_t i = 0; i < std::min(*count, capacity); ++i) {
      items[i] = from.get<Item>();
      if (const std::string fault = check_answer(items[i]); !fault.empty()) remote.fault(fault);
    }
  });
  return ASSAY_OK;
}
assay_status list_algorithms(assay_context* context, const assay_call* call, assay_algorithm* algorithms, std::int32_t capacity,
                             std::int32_t* count) {
  const Remote::Answer answer =
      of(context).ask(Function::list_algorithms, [&](Writer& to) { to.put(capacity), put_call(to, *call); });
  return list(of(context), answer, Function::list_algorithms, algorithms, capacity, count);
}
assay_status list_axes(assay_context* context, assay_axis* axes, std::int32_t capacity, std::int32_t* count) {
  const Remote::Answer answer = of(context).ask(Function::list_axes, [&](Writer& to) { to.put(capacity); });
  return list(of(context), answer, Function::list_axes, axes, capacity, count);
}
assay_status set_axis(assay_context* context, const char* name, const char* value) {
  return of(context).ask(Function::set_axis, [&](Writer& to) { to.put_text(name), to.put_text(value); }).status;
}

}  // namespace

void Remote::make_table() {
  const Worker::Library& library = worker_->library;
  table_.struct_size = sizeof table_;
  table_.version = ASSAY_BACKEND_VERSION;
  table_.name = library.name.c_str();
  table_.description = library.description.c_str();
  table_.last_error = worker::last_error;
  table_.device_info = device_info;
  table_.allocate = worker::allocate;
  table_.release = worker::release;
  table_.copy_to_device = worker::copy_to_device;
  table_.copy_to_host = worker::copy_to_host;
  table_.fill = fill;
  table_.stream_create = create<Function::stream_create, assay_stream>;
  table_.stream_destroy = [](assay_context* context, assay_stream* stream) { of(context).destroy_stream(stream); };
  table_.synchronize = worker::synchronize;
  if (library.has_events) {
    table_.event_create = create<Function::event_create, assay_event>;
    table_.event_destroy = give_back<Function::event_destroy, assay_event>;
    table_.event_record = event_record;
    table_.event_elapsed = event_elapsed;
  }
  if (library.captures) {
    table_.capture_begin = capture_begin;
    table_.capture_end = capture_end;
    table_.graph_launch = graph_launch;
    table_.graph_destroy = give_back<Function::graph_destroy, assay_graph>;
  }
  table_.supports = supports;
  table_.numerics = numerics;
  if (library.has_algorithms) table_.list_algorithms = list_algorithms;
  if (library.has_axes) {
    table_.list_axes = list_axes;
    table_.set_axis = set_axis;
  }
  table_.workspace_bytes = workspace_bytes;
  table_.execute = execute;
  table_.parameter_size = sizeof(assay_parameter);
  table_.tensor_size = sizeof(assay_tensor);
  table_.algorithm_size = sizeof(assay_algorithm);
  table_.axis_size = sizeof(assay_axis);
}

}  // namespace assay::conformance::worker
