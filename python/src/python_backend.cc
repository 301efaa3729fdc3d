#include "python_backend.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "conformance/backends/call_layout.h"
#include "conformance/backends/stated_plan.h"
#include "conformance/ops/request.h"
#include "conformance/ops/schema_check.h"
#include "reference/types/error.h"

namespace assay::python {
namespace {

thread_local PythonBackend* to_open = nullptr;

PythonBackend& object_of(assay_context* context) { return *reinterpret_cast<PythonBackend*>(context); }

std::int64_t number(const void* pointer) { return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(pointer)); }
template <class T>
T* pointer(const nb::object& value) {
  return reinterpret_cast<T*>(static_cast<std::intptr_t>(nb::cast<std::int64_t>(value)));
}

// `checked`: the same tensors by name.
template <class Tensors>
nb::list tensors_of(const std::vector<assay_tensor>& order, const Tensors& checked) {
  nb::list made;
  for (const assay_tensor& item : order) {
    const auto& each = checked.at(item.name);
    nb::list shape;
    for (const std::int64_t extent : each.shape) shape.append(extent);
    made.append(
        nb::make_tuple(std::string(item.name), std::string(name_of(each.type)), nb::tuple(shape), number(each.data), each.bytes));
  }
  return made;
}

// (op, attributes, inputs, outputs), a tensor being (name, format, shape, address, bytes), in the order of the call.
nb::tuple call_of(const assay_call& call) {
  if (call.algorithm != -1) throw NotSupported("a function of Python has one algorithm; pin none");
  const auto request = conformance::Request::of(call);
  conformance::check_against_schema(request);  // a function checks little
  return nb::make_tuple(request.op(), to_python(request.attributes), tensors_of(conformance::input_items(call), request.in),
                        tensors_of(conformance::output_items(call), request.out));
}

void put(char* to, std::size_t size, std::string_view text) {
  std::snprintf(to, size, "%.*s", static_cast<int>(text.size()), text.data());
}

assay_status no_result(assay_context* context, const char* method, const std::function<nb::tuple()>& arguments) {
  return object_of(context).call(
      method, [](const nb::object&) {}, arguments);
}
template <class T>
assay_status handle_from(assay_context* context, const char* method, T** made) {
  *made = nullptr;
  return object_of(context).call(
      method, [&](const nb::object& value) { *made = pointer<T>(value); }, [] { return nb::make_tuple(); });
}

// Calls with a request: its shape is checked here.
assay_status with_call(
    assay_context* context, const char* method, const assay_call* call, assay_stream* stream,
    const std::function<void(nb::object)>& take = [](const nb::object&) {}) {
  return object_of(context).call(method, take, [&] {
    const nb::tuple made = call_of(*call);
    return stream == nullptr ? nb::make_tuple(made) : nb::make_tuple(number(stream), made);
  });
}

assay_status open(const char* options, assay_context** context) {
  *context = reinterpret_cast<assay_context*>(to_open);
  return *context == nullptr ? ASSAY_FAILED : *options != '\0' ? ASSAY_INVALID_ARGUMENT : ASSAY_OK;
}
void close(assay_context*) {}
const char* last_error(assay_context* context) {
  return context == nullptr ? "a function in Python has no options: expected --backend-options ''"
                            : object_of(context).last_error();
}
assay_status device_info(assay_context* context, assay_device_info* info) {
  const auto take = [&](const nb::object& value) {
    const auto parts = nb::cast<nb::tuple>(value);
    put(info->name, sizeof info->name, nb::cast<std::string>(parts[0]));
    put(info->architecture, sizeof info->architecture, nb::cast<std::string>(parts[1]));
    put(info->software, sizeof info->software, nb::cast<std::string>(parts[2]));
  };
  return object_of(context).call("device_info", take, [] { return nb::make_tuple(); });
}

assay_status allocate(assay_context* context, std::int64_t bytes, void** data) {
  *data = nullptr;
  return object_of(context).call(
      "allocate", [&](const nb::object& value) { *data = pointer<void>(value); }, [&] { return nb::make_tuple(bytes); });
}
void release(assay_context* context, void* data) {
  no_result(context, "release", [&] { return nb::make_tuple(number(data)); });
}
assay_status copy_to_device(assay_context* context, assay_stream* stream, void* device, const void* host, std::int64_t bytes) {
  if (bytes <= 0) return ASSAY_OK;
  if (object_of(context).is_host()) {
    std::memcpy(device, host, static_cast<std::size_t>(bytes));
    return ASSAY_OK;
  }
  return no_result(context, "copy_to_device",
                   [&] { return nb::make_tuple(number(stream), number(device), number(host), bytes); });
}
assay_status copy_to_host(assay_context* context, assay_stream* stream, void* host, const void* device, std::int64_t bytes) {
  if (bytes <= 0) return ASSAY_OK;
  if (object_of(context).is_host()) {
    std::memcpy(host, device, static_cast<std::size_t>(bytes));
    return ASSAY_OK;
  }
  return no_result(context, "copy_to_host", [&] { return nb::make_tuple(number(stream), number(host), number(device), bytes); });
}
assay_status fill(assay_context* context, assay_stream* stream, void* device, std::uint8_t value, std::int64_t bytes) {
  if (bytes <= 0) return ASSAY_OK;
  if (object_of(context).is_host()) {
    std::memset(device, value, static_cast<std::size_t>(bytes));
    return ASSAY_OK;
  }
  return no_result(context, "fill",
                   [&] { return nb::make_tuple(number(stream), number(device), static_cast<int>(value), bytes); });
}

assay_status stream_create(assay_context* context, assay_stream** stream) {
  return handle_from(context, "stream_create", stream);
}
void stream_destroy(assay_context* context, assay_stream* stream) {
  no_result(context, "stream_destroy", [&] { return nb::make_tuple(number(stream)); });
}
assay_status synchronize(assay_context* context, assay_stream* stream, std::int64_t timeout_ms) {
  bool done = true;
  const assay_status status = object_of(context).call(
      "synchronize", [&](const nb::object& value) { done = nb::cast<bool>(value); },
      [&] { return nb::make_tuple(number(stream), timeout_ms); });
  return status == ASSAY_OK && !done ? ASSAY_TIMEOUT : status;
}

assay_status capture_begin(assay_context* context, assay_stream* stream) {
  return no_result(context, "capture_begin", [&] { return nb::make_tuple(number(stream)); });
}
assay_status capture_end(assay_context* context, assay_stream* stream, assay_graph** graph) {
  *graph = nullptr;
  return object_of(context).call(
      "capture_end", [&](const nb::object& value) { *graph = pointer<assay_graph>(value); },
      [&] { return nb::make_tuple(number(stream)); });
}
assay_status graph_launch(assay_context* context, assay_graph* graph, assay_stream* stream) {
  return no_result(context, "graph_launch", [&] { return nb::make_tuple(number(graph), number(stream)); });
}
void graph_destroy(assay_context* context, assay_graph* graph) {
  no_result(context, "graph_destroy", [&] { return nb::make_tuple(number(graph)); });
}

assay_status supports(assay_context* context, const assay_call* call) { return with_call(context, "supports", call, nullptr); }
assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* stated) {
  return with_call(context, "numerics", call, nullptr, [&](const nb::object& value) {
    const auto parts = nb::cast<nb::tuple>(value);  // unit, plan, keeps_zero_sign, deterministic, batch_invariant
    put(stated->unit, sizeof stated->unit, nb::cast<std::string>(parts[0]));
    conformance::put_plan(*stated, nb::cast<std::string>(parts[1]));
    stated->keeps_zero_sign = nb::cast<int>(parts[2]);
    stated->deterministic = nb::cast<int>(parts[3]);
    stated->batch_invariant = nb::cast<int>(parts[4]);
  });
}
assay_status workspace_bytes(assay_context*, const assay_call*, std::int64_t* bytes) {
  *bytes = 0;  // a function of Python allocates what it needs
  return ASSAY_OK;
}
assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  return with_call(context, "execute", call, stream);
}

}  // namespace

PythonBackend::PythonBackend(nb::object object, InPython in_python, std::function<void(std::exception_ptr)> interrupted)
    : object_(std::move(object)), in_python_(std::move(in_python)), interrupted_(std::move(interrupted)) {
  name_ = nb::cast<std::string>(object_.attr("name"));
  description_ = nb::cast<std::string>(object_.attr("description"));
  is_host_ = nb::cast<bool>(object_.attr("is_host"));
  assay_backend& t = table_;
  t.struct_size = sizeof t;
  t.version = ASSAY_BACKEND_VERSION;
  t.name = name_.c_str();
  t.description = description_.c_str();
  t.open = open;
  t.close = close;
  t.last_error = python::last_error;
  t.device_info = device_info;
  t.allocate = allocate;
  t.release = release;
  t.copy_to_device = copy_to_device;
  t.copy_to_host = copy_to_host;
  t.fill = fill;
  t.stream_create = stream_create;
  t.stream_destroy = stream_destroy;
  t.synchronize = synchronize;
  if (nb::cast<bool>(object_.attr("can_capture"))) {
    t.capture_begin = capture_begin;
    t.capture_end = capture_end;
    t.graph_launch = graph_launch;
    t.graph_destroy = graph_destroy;
  }
  t.supports = supports;
  t.numerics = numerics;
  t.workspace_bytes = workspace_bytes;
  t.execute = execute;
  t.parameter_size = sizeof(assay_parameter);
  t.tensor_size = sizeof(assay_tensor);
  t.algorithm_size = sizeof(assay_algorithm);
  t.axis_size = sizeof(assay_axis);
}

PythonBackend::~PythonBackend() = default;

const assay_backend& PythonBackend::table() {
  to_open = this;
  return table_;
}

// What the object itself makes of an exception: a status and one line. Ctrl-C and sys.exit() are not the object's.
assay_status PythonBackend::status_of(nb::python_error& error) {
  if (error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_SystemExit)) {
    over_ = true;
    error_ = "interrupted";
    interrupted_(std::make_exception_ptr(error));
    return ASSAY_FAILED;
  }
  try {
    const auto said = nb::cast<nb::tuple>(object_.attr("failed")(error.value()));
    error_ = nb::cast<std::string>(said[1]);
    return static_cast<assay_status>(nb::cast<int>(said[0]));
  } catch (const std::exception& worse) {
    error_ = worse.what();
    return ASSAY_FAILED;
  }
}

assay_status PythonBackend::call(const char* method, const std::function<void(nb::object)>& take,
                                 const std::function<nb::tuple()>& arguments) {
  assay_status status = ASSAY_OK;
  in_python_([&] {
    const bool releases = std::strcmp(method, "release") == 0 || std::string_view(method).ends_with("_destroy");
    if (over_ && !releases) {
      error_ = "interrupted";
      status = ASSAY_FAILED;
      return;
    }
    try {
      take(object_.attr(method)(*arguments()));
    } catch (nb::python_error& error) {
      status = status_of(error);
    } catch (const NotSupported& error) {
      error_ = error.what();
      status = ASSAY_NOT_SUPPORTED;
    } catch (const InvalidArgument& error) {
      error_ = error.what();
      status = ASSAY_INVALID_ARGUMENT;
    } catch (const std::exception& error) {  // a value of a type that was not expected
      error_ = std::string(method) + "(): " + error.what();
      status = ASSAY_FAILED;
    }
  });
  return status;
}

}  // namespace assay::python
