#include "conformance/backends/backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "conformance/backends/built_in.h"

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
  return {reference_backend(), null_backend(), device_backend(), bringup_backend(), cublaslt_backend()};
#else
  return {reference_backend(), null_backend()};
#endif
}

#ifndef ASSAY_HAS_DEVICE
std::vector<std::string> cublaslt_findings() { return {}; }
#endif

namespace {

// Every function that backend.h does not call optional. Groups of optional ones come whole or not at all.
std::string first_fault(const assay_backend& table) {
  if (table.version != ASSAY_BACKEND_VERSION) {
    return "speaks interface version " + std::to_string(table.version) + ": expected " + std::to_string(ASSAY_BACKEND_VERSION);
  }
  if (table.struct_size < sizeof(assay_backend)) {
    return "has a function table of " + std::to_string(table.struct_size) + " bytes: expected at least " +
           std::to_string(sizeof(assay_backend));
  }
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
  for (const auto& [name, there] : required) {
    if (!there) return std::string("leaves out the required function ") + name;
  }
  const int capture = (table.capture_begin != nullptr) + (table.capture_end != nullptr) + (table.graph_launch != nullptr) +
                      (table.graph_destroy != nullptr);
  if (capture != 0 && capture != 4) return "has some of the four capture functions: expected all or none";
  const int events = (table.event_create != nullptr) + (table.event_destroy != nullptr) + (table.event_record != nullptr) +
                     (table.event_elapsed != nullptr);
  if (events != 0 && events != 4) return "has some of the four event functions: expected all or none";
  if ((table.list_axes == nullptr) != (table.set_axis == nullptr)) return "has one of list_axes and set_axis: expected both or none";
  return "";
}

}  // namespace

Backend::Backend(const std::string& name, const std::string& options) {
  for (const assay_backend* each : built_in_backends()) {
    if (name == each->name) table_ = each;
  }
  if (table_ == nullptr) {
    if (name == "device" || name == "bringup" || name == "cublaslt") {
      throw BackendError(ASSAY_NOT_SUPPORTED, "backend '" + name + "' is not in this build: build where there is a CUDA compiler (ASSAY_CUDA=ON insists)");
    }
    if (name.find('/') == std::string::npos && name.find(".so") == std::string::npos) {
      std::string names;
      for (const assay_backend* each : built_in_backends()) names += std::string(names.empty() ? "" : ", ") + each->name;
      throw BackendError(ASSAY_INVALID_ARGUMENT, "backend '" + name + "' is unknown: expected " + names + " or the path of a shared library");
    }
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw BackendError(ASSAY_FAILED, "backend " + name + " does not load: " + dlerror());
    const auto entry = reinterpret_cast<assay_backend_entry>(dlsym(library_, ASSAY_BACKEND_ENTRY));
    table_ = entry == nullptr ? nullptr : entry();
    std::string fault;
    if (entry == nullptr) {
      fault = "does not export " ASSAY_BACKEND_ENTRY;
    } else if (table_ == nullptr) {
      fault = "returns no function table";
    } else {
      fault = first_fault(*table_);
    }
    if (!fault.empty()) {
      dlclose(library_);
      throw BackendError(ASSAY_FAILED, "backend " + name + " " + fault);
    }
  }
  try {
    open(options);
  } catch (...) {
    if (library_ != nullptr) dlclose(library_);
    throw;
  }
}

Backend::Backend(const assay_backend& table, const std::string& options) : table_(&table) {
  if (const std::string fault = first_fault(table); !fault.empty()) throw BackendError(ASSAY_FAILED, "the backend " + fault);
  open(options);
}

void Backend::open(const std::string& options) {
  const assay_status status = table_->open(options.c_str(), &context_);
  if (status == ASSAY_OK) return;
  const char* why = table_->last_error(nullptr);
  throw BackendError(status, "backend " + name() + " does not open (" + std::string(name_of(status)) + "): " + (why == nullptr ? "" : why));
}

namespace {
std::atomic<bool> all_given_up = false;
}
void Backend::give_up_all() { all_given_up = true; }
// The host backends of ours wait for no device.
bool Backend::is_given_up() const {
  return given_up_ || (all_given_up && table_ != reference_backend() && table_ != null_backend());
}

Backend::~Backend() {
  if (is_given_up()) return;
  if (context_ != nullptr) table_->close(context_);
  if (library_ != nullptr) dlclose(library_);
}

assay_device_info Backend::device_info() {
  assay_device_info info{};
  info.struct_size = sizeof info;
  check(table_->device_info(context_, &info), "ask for the device");
  return info;
}

std::vector<assay_algorithm> Backend::algorithms(const assay_call& call) {
  if (table_->list_algorithms == nullptr) return {};
  std::int32_t count = 0;
  check(table_->list_algorithms(context_, &call, nullptr, 0, &count), "count its algorithms");
  std::vector<assay_algorithm> all(static_cast<std::size_t>(std::max(count, 0)));
  for (assay_algorithm& each : all) each.struct_size = sizeof each;
  check(table_->list_algorithms(context_, &call, all.data(), count, &count), "list its algorithms");
  return all;
}

std::vector<assay_axis> Backend::axes() {
  if (table_->list_axes == nullptr) return {};
  std::int32_t count = 0;
  check(table_->list_axes(context_, nullptr, 0, &count), "count its axes");
  std::vector<assay_axis> all(static_cast<std::size_t>(std::max(count, 0)));
  for (assay_axis& each : all) each.struct_size = sizeof each;
  check(table_->list_axes(context_, all.data(), count, &count), "list its axes");
  return all;
}

void Backend::set_axis(const std::string& axis, const std::string& value) {
  if (table_->set_axis == nullptr) {
    throw BackendError(ASSAY_INVALID_ARGUMENT, "backend " + name() + " has no axes: --axis " + axis + "=" + value + " cannot be set");
  }
  check(table_->set_axis(context_, axis.c_str(), value.c_str()), "set axis " + axis + " to '" + value + "'");
}

std::string Backend::last_error() {
  const char* text = table_->last_error(context_);
  return text == nullptr ? "" : text;
}

void Backend::check(assay_status status, const std::string& doing) {
  if (status == ASSAY_TIMEOUT) give_up();
  if (status == ASSAY_OK) return;
  throw BackendError(status, "backend " + name() + " could not " + doing + " (" + std::string(name_of(status)) + "): " + last_error());
}

}  // namespace assay::conformance
