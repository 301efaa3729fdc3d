// Null pointers, and structures that no array or size stands behind, in every function of the host backends: INVALID_ARGUMENT, with a
// reason, as backend.h says. They cannot come through a worker, so that no case line has them.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/backends/call_layout.h"

namespace assay::conformance {
namespace {

struct Opened {
  explicit Opened(const assay_backend& with) : table(with) {
    EXPECT_EQ(table.open("", &context), ASSAY_OK);
    EXPECT_EQ(table.stream_create(context, &stream), ASSAY_OK);
    EXPECT_EQ(table.event_create(context, &event), ASSAY_OK);
    EXPECT_EQ(table.capture_begin(context, stream), ASSAY_OK);
    EXPECT_EQ(table.capture_end(context, stream, &graph), ASSAY_OK);
    splits.name = "splits", splits.dtype = ASSAY_I64, splits.rank = 1, splits.shape[0] = 2;
    splits.data = values, splits.bytes = sizeof values;
    offsets.name = "offsets", offsets.dtype = ASSAY_I64, offsets.rank = 1, offsets.shape[0] = 3;
    offsets.data = results, offsets.bytes = sizeof results;
    call = call_of_this_build();
    call.op = "splits_to_offsets";
    call.inputs = &splits, call.input_count = 1;
    call.outputs = &offsets, call.output_count = 1;
    call.algorithm = -1;
  }
  ~Opened() {
    table.graph_destroy(context, graph);
    table.event_destroy(context, event);
    table.stream_destroy(context, stream);
    table.close(context);
  }
  const assay_backend& table;
  assay_context* context = nullptr;
  assay_stream* stream = nullptr;
  assay_event* event = nullptr;
  assay_graph* graph = nullptr;
  std::int64_t values[2] = {3, 4}, results[3] = {-1, -1, -1};
  assay_tensor splits{}, offsets{};
  assay_call call{};
};

// One call with a null argument; `without_context`: with every other argument given, the context is null.
struct NullCall {
  const char* name;
  std::function<assay_status(Opened&, assay_context*)> make;
  bool also_wrong_with_context = true;  // another argument is null
};

std::vector<NullCall> null_calls() {
  static std::int64_t bytes = 0;
  static double time = 0;
  static char memory[16];
  static assay_device_info info{};
  static assay_numerics stated{};
  static assay_event* event;
  static assay_stream* stream;
  static assay_graph* graph;
  static void* data;
  // clang-format off
  return {
      {"device_info", [](Opened& o, assay_context* c) { return o.table.device_info(c, nullptr); }},
      {"device_info without a context", [](Opened& o, assay_context* c) { return o.table.device_info(c, &info); }, false},
      {"allocate", [](Opened& o, assay_context* c) { return o.table.allocate(c, 8, nullptr); }},
      {"allocate without a context", [](Opened& o, assay_context*) { return o.table.allocate(nullptr, 8, &data); }},
      {"copy to null", [](Opened& o, assay_context* c) { return o.table.copy_to_device(c, o.stream, nullptr, memory, 8); }},
      {"copy from null", [](Opened& o, assay_context* c) { return o.table.copy_to_device(c, o.stream, memory, nullptr, 8); }},
      {"copy to a null host", [](Opened& o, assay_context* c) { return o.table.copy_to_host(c, o.stream, nullptr, memory, 8); }},
      {"copy from a null device", [](Opened& o, assay_context* c) { return o.table.copy_to_host(c, o.stream, memory, nullptr, 8); }},
      {"fill null", [](Opened& o, assay_context* c) { return o.table.fill(c, o.stream, nullptr, 1, 8); }},
      {"stream_create", [](Opened& o, assay_context* c) { return o.table.stream_create(c, nullptr); }},
      {"stream_create without a context", [](Opened& o, assay_context*) { return o.table.stream_create(nullptr, &stream); }},
      {"synchronize", [](Opened& o, assay_context* c) { return o.table.synchronize(c, nullptr, 1); }},
      {"event_create", [](Opened& o, assay_context* c) { return o.table.event_create(c, nullptr); }},
      {"event_create without a context", [](Opened& o, assay_context*) { return o.table.event_create(nullptr, &event); }},
      {"event_record", [](Opened& o, assay_context* c) { return o.table.event_record(c, nullptr, o.stream); }},
      {"event_elapsed", [](Opened& o, assay_context* c) { return o.table.event_elapsed(c, o.event, nullptr, &time); }},
      {"event_elapsed from null", [](Opened& o, assay_context* c) { return o.table.event_elapsed(c, nullptr, o.event, &time); }},
      {"event_elapsed into null", [](Opened& o, assay_context* c) { return o.table.event_elapsed(c, o.event, o.event, nullptr); }},
      {"capture_begin", [](Opened& o, assay_context* c) { return o.table.capture_begin(c, nullptr); }},
      {"capture_end", [](Opened& o, assay_context* c) { return o.table.capture_end(c, nullptr, &graph); }},
      {"capture_end into null", [](Opened& o, assay_context* c) { return o.table.capture_end(c, o.stream, nullptr); }},
      {"graph_launch", [](Opened& o, assay_context* c) { return o.table.graph_launch(c, nullptr, o.stream); }},
      {"graph_launch on null", [](Opened& o, assay_context* c) { return o.table.graph_launch(c, o.graph, nullptr); }},
      {"supports", [](Opened& o, assay_context* c) { return o.table.supports(c, nullptr); }},
      {"supports without a context", [](Opened& o, assay_context*) { return o.table.supports(nullptr, &o.call); }},
      {"numerics of null", [](Opened& o, assay_context* c) { return o.table.numerics(c, nullptr, &stated); }},
      {"numerics into null", [](Opened& o, assay_context* c) { return o.table.numerics(c, &o.call, nullptr); }},
      {"workspace_bytes of null", [](Opened& o, assay_context* c) { return o.table.workspace_bytes(c, nullptr, &bytes); }},
      {"workspace_bytes into null", [](Opened& o, assay_context* c) { return o.table.workspace_bytes(c, &o.call, nullptr); }},
      {"execute of null", [](Opened& o, assay_context* c) { return o.table.execute(c, o.stream, nullptr); }},
      {"execute on null", [](Opened& o, assay_context* c) { return o.table.execute(c, nullptr, &o.call); }},
      {"execute without a context", [](Opened& o, assay_context*) { return o.table.execute(nullptr, o.stream, &o.call); }},
  };
  // clang-format on
}

TEST(NullArguments, AreRefusedByEveryFunction) {
  for (const assay_backend* table : {reference_backend(), null_backend()}) {
    Opened opened(*table);
    for (const NullCall& each : null_calls()) {
      for (assay_context* context : {opened.context, static_cast<assay_context*>(nullptr)}) {
        const bool is_wrong = context == nullptr || each.also_wrong_with_context;
        const assay_status status = each.make(opened, context);
        EXPECT_EQ(status, is_wrong ? ASSAY_INVALID_ARGUMENT : ASSAY_OK) << table->name << ": " << each.name;
        const bool told = std::strlen(table->last_error(context)) > 0 || std::strlen(table->last_error(nullptr)) > 0;
        EXPECT_TRUE(!is_wrong || told) << each.name;
      }
    }
    EXPECT_EQ(table->open("", nullptr), ASSAY_INVALID_ARGUMENT);
    table->close(nullptr);
    table->release(nullptr, nullptr);
    table->release(opened.context, nullptr);
  }
}

struct BadStructure {
  const char* name;
  const char* told;  // a part of last_error
  void (*change)(assay_call&);
};
constexpr BadStructure kBadStructures[] = {
    {"no size", "struct_size", [](assay_call& call) { call.struct_size = 0; }},
    {"a short size", "struct_size", [](assay_call& call) { call.struct_size = offsetof(assay_call, algorithm); }},
    {"no op", "op", [](assay_call& call) { call.op = nullptr; }},
    {"inputs without an array", "inputs", [](assay_call& call) { call.inputs = nullptr; }},
    {"outputs without an array", "outputs", [](assay_call& call) { call.outputs = nullptr; }},
    {"parameters without an array", "parameters", [](assay_call& call) { call.parameter_count = 1; }},
    {"-1 inputs", "input_count", [](assay_call& call) { call.input_count = -1; }},
    {"-1 outputs", "output_count", [](assay_call& call) { call.output_count = -1; }},
    {"-1 parameters", "parameter_count", [](assay_call& call) { call.parameter_count = -1; }},
    {"more inputs than any op", "input_count", [](assay_call& call) { call.input_count = 1025; }},
    {"2^31 - 1 outputs", "output_count", [](assay_call& call) { call.output_count = 0x7fff'ffff; }},
    {"2^31 - 1 parameters", "parameter_count", [](assay_call& call) { call.parameter_count = 0x7fff'ffff; }},
    {"short parameters", "parameter_size", [](assay_call& call) { call.parameter_size = 8; }},
    {"short tensors", "tensor_size", [](assay_call& call) { call.tensor_size = 8; }},
    {"a workspace without memory", "workspace", [](assay_call& call) { call.workspace_bytes = 8; }},
    {"a workspace of -1 bytes", "workspace_bytes", [](assay_call& call) { call.workspace_bytes = -1; }},
};

TEST(BadStructures, AreRefusedAndTouchNothing) {
  const assay_backend& table = *reference_backend();
  for (const BadStructure& bad : kBadStructures) {
    Opened opened(table);
    EXPECT_EQ(table.execute(opened.context, opened.stream, &opened.call), ASSAY_OK);
    EXPECT_EQ(opened.results[2], 7);
    std::fill_n(opened.results, 3, -1);
    assay_call call = opened.call;
    bad.change(call);
    EXPECT_EQ(table.supports(opened.context, &call), ASSAY_INVALID_ARGUMENT) << bad.name;
    EXPECT_EQ(table.execute(opened.context, opened.stream, &call), ASSAY_INVALID_ARGUMENT) << bad.name;
    EXPECT_NE(std::string(table.last_error(opened.context)).find(bad.told), std::string::npos)
        << bad.name << ": " << table.last_error(opened.context);
    for (const std::int64_t each : opened.results) EXPECT_EQ(each, -1) << bad.name;
  }
}

// A tensor at an address that its elements may have, and no better one, is served: on the host no larger multiple is needed.
TEST(Addresses, OfNaturalAlignmentAreServed) {
  Opened opened(*reference_backend());
  alignas(256) std::int64_t memory[8] = {0, 3, 4, 0, -1, -1, -1, 0};
  opened.splits.data = memory + 1;
  opened.offsets.data = memory + 4;
  EXPECT_EQ(opened.table.execute(opened.context, opened.stream, &opened.call), ASSAY_OK)
      << opened.table.last_error(opened.context);
  EXPECT_EQ(memory[4], 0);
  EXPECT_EQ(memory[5], 3);
  EXPECT_EQ(memory[6], 7);
}

}  // namespace
}  // namespace assay::conformance
