// The reference as a shared library, with one fault that its options name:
//
//   absent        every path is declared absent, and is; absent=OP: that op alone
//   unproven      every path is declared absent, and works
//   wrong         the first byte of the first output is changed
//   once=FILE     the same, in the first call while there is no FILE, which that call makes
//   lost          the device is lost at the first call
//   full          there is no memory
//   scales=N      FP8 block products in f32 read the scales of w from place N of their array on, whatever block they belong
//                 to, in every 128 x 128 tile of D but those of even row and column
//   left=OUTPUT     this output is not written
//   doubled=OUTPUT  one is added to every byte that is written of this output: E8M0 scales are doubled
//   turned=OUTPUT   rows 0 and 1 of this output are exchanged, and so on
//   visible=FILE    appends what CUDA_VISIBLE_DEVICES is in this process to FILE, each time it opens
//   gone=FILE       on the device 1, the first open() makes FILE, the first call ends the process, and no open() works from then on
//   unit=NAME     products state this unit and no plan; nothing is wrong with them
//   settings      algorithms 70 (right, states no plan) and 90 (wrong), axes size (1 2) and twice (yes no; no is wrong)
//   late          no call finishes in time
//   busy          the second call never finishes; what waits for it never returns
//   stuck=FILE    the first call makes FILE, and copies from then on never return
//   bytes         calls fail, with a reason that is not text
//   closed        the device cannot be opened
//   slow=FILE     calls take 50 ms; FILE is made at the first
//   hang=FILE     the first call makes FILE and never returns
//
// With FAULTY_UNCAPTURED in the environment nothing can be captured.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/backends/built_in.h"

namespace {

using assay::conformance::reference_backend;

std::string fault;
bool called = false, pending = false, twice = true;
int calls = 0;

bool is(const char* name) { return fault.rfind(name, 0) == 0; }
bool is_gone_device() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return is("gone=") && visible != nullptr && std::string(visible) == "1";
}
bool is_absent(const assay_call* call) { return is("absent") && (fault == "absent" || fault.substr(7) == call->op); }

void wait_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
bool is_held() { return (is("busy") && calls >= 2) || (is("stuck=") && calls >= 1); }

// D with the fault: tiles of odd row or column use the scales of w from place `place` on, one row of scales for each row.
assay_status with_other_scales(assay_context* context, assay_stream* stream, const assay_call* call, std::int64_t place) {
  const assay_status status = reference_backend()->execute(context, stream, call);
  std::vector<assay_tensor> inputs(call->inputs, call->inputs + call->input_count);
  std::vector<float> other;
  std::int64_t K = 0;
  for (int i = 0; i < call->parameter_count; ++i) {
    if (call->parameters[i].name == std::string("K")) K = call->parameters[i].integer;
  }
  for (assay_tensor& each : inputs) {
    if (each.name != std::string("w_rowwise_scale_inv") || each.dtype != ASSAY_F32) continue;
    const auto* right = static_cast<const float*>(each.data);
    const std::int64_t blocks = (K + 127) / 128, pitch = (blocks + 3) / 4 * 4;
    other.assign(right, right + each.bytes / 4);
    for (std::size_t i = 0; i < other.size(); ++i) {
      const auto block = static_cast<std::int64_t>(i) % pitch;
      if (block < blocks) other[i] = right[place + block];
    }
    each.data = other.data();
  }
  if (status != ASSAY_OK || other.empty() || call->output_count != 1 || call->outputs[0].dtype != ASSAY_F32) return status;
  const assay_tensor& d = call->outputs[0];
  std::vector<float> wrong(static_cast<std::size_t>(d.bytes / 4));
  assay_tensor output = d;
  output.data = wrong.data();
  assay_call changed = *call;
  changed.inputs = inputs.data();
  changed.outputs = &output;
  if (reference_backend()->execute(context, stream, &changed) != ASSAY_OK) return ASSAY_FAILED;
  for (std::int64_t row = 0; row < d.shape[0]; ++row) {
    for (std::int64_t column = 0; column < d.shape[1]; ++column) {
      if (row / 128 % 2 == 0 && column / 128 % 2 == 0) continue;
      static_cast<float*>(d.data)[row * d.shape[1] + column] = wrong[static_cast<std::size_t>(row * d.shape[1] + column)];
    }
  }
  return status;
}

// The effect of the options on a tensor that held `before`.
void spoil(const assay_tensor& tensor, const std::vector<unsigned char>& before) {
  if (tensor.bytes == 0) return;
  auto* const bytes = static_cast<unsigned char*>(tensor.data);
  const auto count = static_cast<std::size_t>(tensor.bytes), row = count / static_cast<std::size_t>(tensor.shape[0]);
  if (is("left=")) std::copy(before.begin(), before.end(), bytes);
  for (std::size_t i = 0; is("doubled=") && i < count; ++i) bytes[i] += bytes[i] != before[i] ? 1 : 0;
  for (std::size_t at = 0; is("turned=") && at + 2 * row <= count; at += 2 * row)
    std::swap_ranges(bytes + at, bytes + at + row, bytes + at + row);
}

assay_status with_spoiled_words(assay_context* context, assay_stream* stream, const assay_call* call) {
  const std::string name = fault.substr(fault.find('=') + 1);
  const auto* output = std::find_if(call->outputs, call->outputs + call->output_count,
                                    [&](const assay_tensor& each) { return each.name == name; });
  if (output == call->outputs + call->output_count) return reference_backend()->execute(context, stream, call);
  const auto* bytes = static_cast<const unsigned char*>(output->data);
  const std::vector<unsigned char> before(bytes, bytes + output->bytes);
  const assay_status status = reference_backend()->execute(context, stream, call);
  if (status == ASSAY_OK) spoil(*output, before);
  return status;
}

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  const bool first = is("once=") && !std::ifstream(fault.substr(5)).good();
  if (first) std::ofstream(fault.substr(5)).flush();
  if ((is("slow=") || is("hang=")) && !called) std::ofstream(fault.substr(5)).flush();
  if (is("stuck=") && !called) std::ofstream(fault.substr(6)).flush();
  ++calls;
  called = pending = true;
  if (is_gone_device()) std::abort();
  while (is("hang=")) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (is("slow=")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (is_absent(call)) return ASSAY_NOT_SUPPORTED;
  if (is("lost")) return ASSAY_DEVICE_LOST;
  if (is("bytes")) return ASSAY_FAILED;
  if (is("left=") || is("doubled=") || is("turned=")) return with_spoiled_words(context, stream, call);
  if (is("scales=")) return with_other_scales(context, stream, call, std::stoll(fault.substr(7)));
  assay_call plain = *call;
  plain.algorithm = -1;
  const assay_status status = reference_backend()->execute(context, stream, &plain);
  const bool wrong = is("wrong") || first || (is("settings") && (call->algorithm == 90 || !twice));
  if (wrong && status == ASSAY_OK && call->output_count > 0 && call->outputs[0].bytes > 0) {
    *static_cast<unsigned char*>(call->outputs[0].data) ^= 1;
  }
  return status;
}

assay_backend make_table() {
  assay_backend table = *reference_backend();
  table.name = "faulty";
  table.description = "the reference, with a fault";
  table.open = [](const char* options, assay_context** context) {
    fault = options;
    called = pending = false;
    calls = 0;
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (is("visible=")) std::ofstream(fault.substr(8), std::ios::app) << (visible == nullptr ? "none" : visible) << std::endl;
    if (is_gone_device() && std::ifstream(fault.substr(5)).good()) return ASSAY_DEVICE_LOST;
    if (is_gone_device()) std::ofstream(fault.substr(5)).flush();
    return is("closed") ? ASSAY_DEVICE_LOST : reference_backend()->open("", context);
  };
  table.last_error = [](assay_context*) { return is("absent") ? "absent" : is("bytes") ? "\xff\xfe not text" : fault.c_str(); };
  table.allocate = [](assay_context* context, std::int64_t bytes, void** data) {
    return is("full") ? ASSAY_OUT_OF_MEMORY : reference_backend()->allocate(context, bytes, data);
  };
  table.close = [](assay_context* context) {
    if (is_held()) wait_for_ever();
    reference_backend()->close(context);
  };
  table.release = [](assay_context* context, void* data) {
    if (is_held()) wait_for_ever();
    reference_backend()->release(context, data);
  };
  table.stream_destroy = [](assay_context* context, assay_stream* stream) {
    if (is_held()) wait_for_ever();
    reference_backend()->stream_destroy(context, stream);
  };
  table.copy_to_host = [](assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
    if (is_held()) wait_for_ever();
    return reference_backend()->copy_to_host(context, stream, to, from, bytes);
  };
  table.synchronize = [](assay_context*, assay_stream*, std::int64_t timeout_ms) {
    if (is_held() && is("busy")) {
      if (timeout_ms < 0) wait_for_ever();
      std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
      return ASSAY_TIMEOUT;
    }
    const bool waits = is("late") && pending;
    pending = false;  // after the timeout everything works again
    return waits ? ASSAY_TIMEOUT : ASSAY_OK;
  };
  table.supports = [](assay_context* context, const assay_call* call) {
    if (is_absent(call) || is("unproven")) return ASSAY_NOT_SUPPORTED;
    assay_call plain = *call;
    plain.algorithm = -1;
    return reference_backend()->supports(context, &plain);
  };
  table.numerics = [](assay_context* context, const assay_call* call, assay_numerics* numerics) {
    const assay_status status = reference_backend()->numerics(context, call, numerics);
    if (call->algorithm == 70) numerics->plan[0] = numerics->unit[0] = '\0';
    if (is("unit=")) {
      numerics->plan[0] = '\0';
      std::strncpy(numerics->unit, fault.c_str() + 5, sizeof numerics->unit - 1);
    }
    return status;
  };
  table.workspace_bytes = [](assay_context* context, const assay_call* call, std::int64_t* bytes) {
    assay_call plain = *call;
    plain.algorithm = -1;
    return reference_backend()->workspace_bytes(context, &plain, bytes);
  };
  table.list_algorithms = [](assay_context*, const assay_call*, assay_algorithm* algorithms, std::int32_t capacity,
                             std::int32_t* count) {
    *count = is("settings") ? 2 : 0;
    for (int i = 0; i < std::min(*count, capacity); ++i) {
      algorithms[i].id = i == 0 ? 70 : 90;
      std::strcpy(algorithms[i].description, i == 0 ? "tile 7" : "tile 9, wrong");
    }
    return ASSAY_OK;
  };
  table.list_axes = [](assay_context*, assay_axis* axes, std::int32_t capacity, std::int32_t* count) {
    *count = is("settings") ? 2 : 0;
    for (int i = 0; i < std::min(*count, capacity); ++i) {
      std::strcpy(axes[i].name, i == 0 ? "size" : "twice");
      std::strcpy(axes[i].values, i == 0 ? "1 2" : "yes no");
    }
    return ASSAY_OK;
  };
  table.set_axis = [](assay_context*, const char* name, const char* value) {
    if (!is("settings")) return ASSAY_INVALID_ARGUMENT;
    if (name == std::string("twice")) twice = value != std::string("no");
    return ASSAY_OK;
  };
  table.execute = execute;
  return table;
}

}  // namespace

extern "C" const assay_backend* assay_backend_v1(void) {
  static assay_backend table = make_table();
  if (std::getenv("FAULTY_UNCAPTURED") != nullptr) {
    table.capture_begin = nullptr;
    table.capture_end = nullptr;
    table.graph_launch = nullptr;
    table.graph_destroy = nullptr;
  }
  return &table;
}
