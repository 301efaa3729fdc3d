// A backend with one planted fault, chosen by an option: fault=NAME, a name of faults.txt. Without it every call is right.
// The faults and what explains them were written without sight of what `assay explain` tries.

#include <string>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/backends/host_backend.h"
#include "conformance/backends/reference_numerics.h"
#include "conformance/ops/answer.h"
#include "conformance/tests/unseen/kernels.h"
#include "reference/types/error.h"

namespace assay::conformance::unseen {
namespace {

thread_local std::string planted;
thread_local bool capturing = false, replaying = false;

std::vector<std::string>& names() {
  static std::vector<std::string> all{""};
  return all;
}

void configure(const std::string& options, int& mode) {
  if (options.empty()) return;
  if (options.rfind("fault=", 0) != 0) throw InvalidArgument("--backend-options", "'" + options + "'", "fault=NAME");
  names().push_back(options.substr(6));
  mode = static_cast<int>(names().size()) - 1;
}

// What a launch keeps from the capture: a kernel that read these on the host then.
thread_local std::vector<std::int64_t> captured_splits;
thread_local float captured_noop = 0;

void at_capture(const Request& request) {
  if (on("splits_read_at_capture")) captured_splits = request.splits();
  if (on("noop_read_at_capture")) captured_noop = *static_cast<const float*>(request.input("noop").data);
}

void at_launch(Request& request) {
  if (on("splits_read_at_capture") && !captured_splits.empty()) {
    TensorView& splits = request.in.at("splits");
    splits.type = Format::i64;
    splits.data = captured_splits.data();
  }
  if (on("noop_read_at_capture")) request.in.at("noop").data = &captured_noop;
}

void perform(const assay_call& call, int mode, bool dry) {
  if (call.algorithm != -1) throw NotSupported("these kernels have one algorithm; pin none");
  planted = names()[static_cast<std::size_t>(mode)];
  Request request = Request::of(call);
  const std::vector<OutputSpec> outputs = outputs_of(request);
  for (const auto& [name, tensor] : request.out) {
    bool known = false;
    for (const OutputSpec& each : outputs) known = known || each.name == name;
    if (!known) throw NotSupported("op " + request.op() + " has no output '" + name + "' here");
  }
  if (dry) {
    if (capturing) at_capture(request);
    return;
  }
  if (replaying) at_launch(request);
  if (request.op() == "quantize") return quantize_kernel(request);
  if (request.op() == "grouped_gemm") return gemm_kernel(request);
  other_kernels(request);
}

void state(const assay_call& call, assay_numerics& numerics) { put_reference_numerics(Request::of(call), numerics); }

constexpr HostBackend kUnseen{"unseen", "kernels with a planted fault", configure, perform, state};

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  capturing = stream->recording != nullptr;
  const assay_status status = host::execute<kUnseen>(context, stream, call);
  capturing = false;
  return status;
}
assay_status launch(assay_context* context, assay_graph* graph, assay_stream* stream) {
  replaying = true;
  const assay_status status = host::graph_launch<kUnseen>(context, graph, stream);
  replaying = false;
  return status;
}

}  // namespace

bool on(std::string_view fault) { return planted == fault; }
bool launching() { return replaying; }

const assay_backend* table() {
  static const assay_backend made = [] {
    assay_backend each = *host_table<kUnseen>();
    each.execute = execute;
    each.graph_launch = launch;
    return each;
  }();
  return &made;
}

}  // namespace assay::conformance::unseen

extern "C" __attribute__((visibility("default"))) const assay_backend* assay_backend_v1() {
  return assay::conformance::unseen::table();
}
