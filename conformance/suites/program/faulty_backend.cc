// The reference as a shared library, with one fault that its options name:
//
//   absent        every path is declared absent, and is
//   unproven      every path is declared absent, and works all the same
//   wrong         the first byte of the first output is changed
//   lost          the device is lost at the first call
//   full          there is no memory
//   late          no call finishes in time
//   closed        the device cannot be opened
//   slow=FILE     calls take 50 ms; FILE is made at the first
//   hang=FILE     the first call makes FILE and never returns

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "conformance/backends/built_in.h"

namespace {

using assay::conformance::reference_backend;

std::string fault;
bool called = false, pending = false;

bool is(const char* name) { return fault.rfind(name, 0) == 0; }

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  if ((is("slow=") || is("hang=")) && !called) std::ofstream(fault.substr(5)).flush();
  called = pending = true;
  while (is("hang=")) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (is("slow=")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (is("absent")) return ASSAY_NOT_SUPPORTED;
  if (is("lost")) return ASSAY_DEVICE_LOST;
  const assay_status status = reference_backend()->execute(context, stream, call);
  if (is("wrong") && status == ASSAY_OK && call->output_count > 0 && call->outputs[0].bytes > 0) {
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
    return is("closed") ? ASSAY_DEVICE_LOST : reference_backend()->open("", context);
  };
  table.last_error = [](assay_context*) { return fault.c_str(); };
  table.allocate = [](assay_context* context, std::int64_t bytes, void** data) {
    return is("full") ? ASSAY_OUT_OF_MEMORY : reference_backend()->allocate(context, bytes, data);
  };
  table.synchronize = [](assay_context*, assay_stream*, std::int64_t) {
    const bool waits = is("late") && pending;
    pending = false;  // what comes after the watchdog has given up works again
    return waits ? ASSAY_TIMEOUT : ASSAY_OK;
  };
  table.supports = [](assay_context* context, const assay_call* call) {
    return is("absent") || is("unproven") ? ASSAY_NOT_SUPPORTED : reference_backend()->supports(context, call);
  };
  table.execute = execute;
  return table;
}

}  // namespace

extern "C" const assay_backend* assay_backend_v1(void) {
  static const assay_backend table = make_table();
  return &table;
}
