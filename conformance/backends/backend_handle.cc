#include "conformance/backends/backend_handle.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/backends/call_layout.h"
#include "conformance/backends/questions.h"
#include "conformance/cases/case_schema.h"
#include "conformance/worker/answers.h"
#include "conformance/worker/process.h"
#include "conformance/worker/remote.h"

#if defined(__SANITIZE_ADDRESS__)
// A backend without enough memory reports it; the sanitizer must not end the process instead.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace assay::conformance {

std::string_view name_of(assay_status status) {
  switch (status) {
    case ASSAY_OK: return "ok";
    case ASSAY_NOT_SUPPORTED: return "not supported";
    case ASSAY_INVALID_ARGUMENT: return "invalid argument";
    case ASSAY_OUT_OF_MEMORY: return "out of memory";
    case ASSAY_TIMEOUT: return "timeout";
    case ASSAY_DEVICE_LOST: return "device lost";
    case ASSAY_FAILED: return "failed";
  }
  return "an unknown status";
}

std::vector<const assay_backend*> built_in_backends() {
#ifdef ASSAY_HAS_DEVICE
  return {reference_backend(), null_backend(), device_backend(), emulated_backend(), cublaslt_backend()};
#else
  return {reference_backend(), null_backend()};
#endif
}

bool is_built_in(const std::string& name) {
  const std::vector<const assay_backend*> all = built_in_backends();
  return std::any_of(all.begin(), all.end(), [&](const assay_backend* each) { return name == each->name; });
}

#ifndef ASSAY_HAS_DEVICE
std::vector<std::string> cublaslt_findings() { return {}; }
#endif

std::string fault_of(const assay_backend& table) {
  if (table.version != ASSAY_BACKEND_VERSION) {
    return "speaks interface version " + std::to_string(table.version) + ": expected " + std::to_string(ASSAY_BACKEND_VERSION);
  }
  if (std::string fault = fault_in_sizes(table); !fault.empty()) return fault;
  // clang-format off
  const std::pair<const char*, bool> required[] = {
      {"name", table.name != nullptr},           {"description", table.description != nullptr},
      {"open", table.open != nullptr},           {"close", table.close != nullptr},
      {"last_error", table.last_error != nullptr}, {"device_info", table.device_info != nullptr},
      {"allocate", table.allocate != nullptr},   {"release", table.release != nullptr},
      {"copy_to_device", table.copy_to_device != nullptr}, {"copy_to_host", table.copy_to_host != nullptr},
      {"fill", table.fill != nullptr},           {"stream_create", table.stream_create != nullptr},
      {"stream_destroy", table.stream_destroy != nullptr}, {"synchronize", table.synchronize != nullptr},
      {"supports", table.supports != nullptr},   {"numerics", table.numerics != nullptr},
      {"workspace_bytes", table.workspace_bytes != nullptr}, {"execute", table.execute != nullptr},
  };
  // clang-format on
  for (const auto& [name, there] : required) {
    if (!there) return std::string("leaves out the required function ") + name;
  }
  const int capture = (table.capture_begin != nullptr) + (table.capture_end != nullptr) + (table.graph_launch != nullptr) +
                      (table.graph_destroy != nullptr);
  if (capture != 0 && capture != 4) return "has some of the four capture functions: expected all or none";
  const int events = (table.event_create != nullptr) + (table.event_destroy != nullptr) + (table.event_record != nullptr) +
                     (table.event_elapsed != nullptr);
  if (events != 0 && events != 4) return "has some of the four event functions: expected all or none";
  if ((table.list_axes == nullptr) != (table.set_axis == nullptr))
    return "has one of list_axes and set_axis: expected both or none";
  return "";
}

std::string current_backend_name(const std::string& name) { return name == "bringup" ? "emulated" : name; }

Backend::Backend(const std::string& given, const std::string& options, std::int64_t limit_ms) {
  const std::string name = current_backend_name(given);
  for (const assay_backend* each : built_in_backends()) {
    if (name == each->name) table_ = each;
  }
  if (table_ == nullptr) {
    if (name == "device" || name == "emulated" || name == "cublaslt") {
      throw BackendError(
          ASSAY_NOT_SUPPORTED,
          "backend '" + name + "' is not in this build: build where there is a CUDA compiler (ASSAY_CUDA=ON insists)");
    }
    if (worker::is_python(name)) {
      if (std::count(name.begin(), name.end(), ':') != 2 || name.ends_with(':') || name.find("::") != std::string::npos)
        throw BackendError(ASSAY_INVALID_ARGUMENT, "backend '" + name + "': expected python:MODULE:NAME or ffi:LIBRARY:SYMBOL");
    } else if (name.find('/') == std::string::npos && name.find(".so") == std::string::npos) {
      std::string names;
      std::vector<std::string_view> known;
      for (const assay_backend* each : built_in_backends()) {
        names += std::string(names.empty() ? "" : ", ") + each->name;
        known.emplace_back(each->name);
      }
      throw BackendError(ASSAY_INVALID_ARGUMENT, "backend '" + name + "' is unknown: expected " + names +
                                                     ", the path of a shared library, python:MODULE:NAME or ffi:LIBRARY:SYMBOL" +
                                                     did_you_mean(name, known));
    }
  }
  if (table_ == reference_backend() || table_ == null_backend()) {
    open(options);
    return;
  }
  remote_ = std::make_unique<worker::Remote>(name, options, limit_ms);
  table_ = &remote_->table();
  context_ = reinterpret_cast<assay_context*>(remote_.get());
}

Backend::Backend(const assay_backend& table, const std::string& options) : table_(&table) {
  if (const std::string fault = fault_of(table); !fault.empty()) throw BackendError(ASSAY_FAILED, "the backend " + fault);
  if (table.struct_size < sizeof table) {
    known_ = std::make_unique<assay_backend>(known_table(table));
    table_ = known_.get();
  }
  if (sizes_of(*table_) != kSizesHere)
    throw BackendError(ASSAY_FAILED, "the backend is linked in, but was compiled with another backend.h");
  open(options);
}

void Backend::open(const std::string& options) {
  const assay_status status = table_->open(options.c_str(), &context_);
  if (status == ASSAY_OK) return;
  const char* why = table_->last_error(nullptr);
  throw BackendError(
      status, "backend " + name() + " does not open (" + std::string(name_of(status)) + "): " + (why == nullptr ? "" : why));
}

void Backend::give_up() {
  given_up_ = true;
  if (remote_ != nullptr) remote_->give_up();
}

bool Backend::is_given_up() const { return given_up_ || (remote_ != nullptr && remote_->is_spent()); }

void Backend::begin_case() {
  if (remote_ != nullptr) remote_->begin_case();
}

void Backend::settle() {
  if (remote_ != nullptr) remote_->settle();
}

void Backend::close() {
  assay_context* context = std::exchange(context_, nullptr);
  if (context == nullptr || is_given_up()) return;
  if (remote_ != nullptr) return remote_->close();
  table_->close(context);
}

std::shared_ptr<assay_stream*> Backend::create_stream() {
  auto made = std::make_shared<assay_stream*>(nullptr);
  if (remote_ != nullptr) {
    remote_->create_stream_later(made);
  } else {
    check(table_->stream_create(context_, made.get()), "create a stream");
  }
  return made;
}

void Backend::drain(assay_stream* stream) {
  if (stream == nullptr || is_given_up()) return;
  if (remote_ != nullptr) return remote_->drain(stream);
  if (table_->synchronize(context_, stream, kCallLimit) == ASSAY_TIMEOUT) give_up();
}

std::byte* Backend::area(std::size_t bytes) { return remote_ == nullptr ? nullptr : remote_->area(bytes); }

std::string Backend::end_text() const { return remote_ == nullptr || given_up_ ? "" : remote_->end_text(); }

std::string Backend::note() const {
  if (remote_ == nullptr || remote_->float_mode().empty()) return "";
  return "loading backend " + name() + " set another floating-point mode (" + remote_->float_mode() +
         "; -ffast-math at its link?): its calls are made in the default mode";
}

Backend::~Backend() {
  try {
    close();
  } catch (const BackendError&) {  // close() reports it
  }
}

namespace {

// Answers of a backend in this process obey the same rules as those of a worker.
void require_good(const std::string& fault) {
  if (!fault.empty()) throw BackendFault(ASSAY_FAILED, fault, "", false, true);
}

}  // namespace

assay_device_info Backend::device_info() {
  assay_device_info info{};
  info.struct_size = sizeof info;
  check(table_->device_info(context_, &info), "ask for the device");
  require_good(check_answer(info));
  return info;
}

std::vector<assay_algorithm> Backend::algorithms(const assay_call& call) {
  if (table_->list_algorithms == nullptr) return {};
  std::int32_t count = 0;
  check(table_->list_algorithms(context_, &call, nullptr, 0, &count), "count its algorithms");
  require_good(check_count("list_algorithms()", count));
  std::vector<assay_algorithm> all(static_cast<std::size_t>(count));
  for (assay_algorithm& each : all) each.struct_size = sizeof each;
  check(table_->list_algorithms(context_, &call, all.data(), count, &count), "list its algorithms");
  require_good(check_count("list_algorithms()", count));
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  for (auto& each : all) require_good(check_answer(each));
  return all;
}

std::vector<assay_axis> Backend::axes() {
  if (table_->list_axes == nullptr) return {};
  std::int32_t count = 0;
  check(table_->list_axes(context_, nullptr, 0, &count), "count its axes");
  require_good(check_count("list_axes()", count));
  std::vector<assay_axis> all(static_cast<std::size_t>(count));
  for (assay_axis& each : all) each.struct_size = sizeof each;
  check(table_->list_axes(context_, all.data(), count, &count), "list its axes");
  require_good(check_count("list_axes()", count));
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  for (auto& each : all) require_good(check_answer(each));
  return all;
}

void Backend::set_axis(const std::string& axis, const std::string& value) {
  if (table_->set_axis == nullptr) {
    throw BackendError(ASSAY_INVALID_ARGUMENT,
                       "backend " + name() + " has no axes: --axis " + axis + "=" + value + " cannot be set");
  }
  check(table_->set_axis(context_, axis.c_str(), value.c_str()), "set axis " + axis + " to '" + value + "'");
}

std::string Backend::last_error() {
  const char* text = table_->last_error(context_);
  return text == nullptr ? "" : printable(text);
}

void Backend::check(assay_status status, const std::string& doing) {
  if (status != ASSAY_OK) check({true, status, last_error()}, doing);
}

void Backend::check(const CallResult& result, const std::string& doing) {
  if (result.status == ASSAY_TIMEOUT) give_up();
  if (result.status == ASSAY_OK) return;
  throw BackendError(result.status, "backend " + name() + " could not " + doing + " (" + std::string(name_of(result.status)) +
                                        "): " + result.error);
}

}  // namespace assay::conformance
