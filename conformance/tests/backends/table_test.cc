// Function tables that must be refused before any call, and calls that the reference must refuse without touching memory.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <ostream>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/built_in.h"
#include "conformance/backends/call_layout.h"

namespace assay::conformance {
namespace {

struct TableFault {
  std::string name;
  std::string reported;
  void (*plant)(assay_backend&);
};
void PrintTo(const TableFault& fault, std::ostream* out) { *out << fault.name; }

class Table : public testing::TestWithParam<TableFault> {};

TEST_P(Table, IsRefusedBeforeItIsUsed) {
  assay_backend table = *reference_backend();
  GetParam().plant(table);
  try {
    const Backend backend(table);
    FAIL() << "it was accepted";
  } catch (const BackendError& error) {
    EXPECT_EQ(error.status(), ASSAY_FAILED);
    EXPECT_EQ(std::string(error.what()), "the backend " + GetParam().reported);
  }
}

#define LEAVES_OUT(member)                                                                                           \
  TableFault {                                                                                                       \
    "no_" #member, "leaves out the required function " #member, [](assay_backend& table) { table.member = nullptr; } \
  }
#define ONE_OF(member, text)                                                            \
  TableFault {                                                                          \
    "only_without_" #member, text, [](assay_backend& table) { table.member = nullptr; } \
  }
constexpr const char* kCapture = "has some of the four capture functions: expected all or none";
constexpr const char* kEvents = "has some of the four event functions: expected all or none";
constexpr const char* kAxes = "has one of list_axes and set_axis: expected both or none";

INSTANTIATE_TEST_SUITE_P(
    Faults, Table,
    // clang-format off
    testing::Values(
        TableFault{"newer_version", "speaks interface version 2: expected 1", [](assay_backend& table) { table.version = 2; }},
        TableFault{"no_version", "speaks interface version 0: expected 1", [](assay_backend& table) { table.version = 0; }},
        TableFault{"short_table", "has a function table of 16 bytes: expected at least " + std::to_string(kFirstTable),
                   [](assay_backend& table) { table.struct_size = 16; }},
        TableFault{"table_cut_within_the_sizes", "has a function table of 264 bytes: expected 248, or at least 280",
                   [](assay_backend& table) { table.struct_size = 264; }},
        TableFault{"no_tensor_size", "states tensor_size 0: expected what sizeof gives, a multiple of 8 from 64 to 4096",
                   [](assay_backend& table) { table.tensor_size = 0; }},
        TableFault{"small_parameters", "states parameter_size 32: expected what sizeof gives, a multiple of 8 from 40 to 4096",
                   [](assay_backend& table) { table.parameter_size = 32; }},
        TableFault{"large_axes", "states axis_size 4104: expected what sizeof gives, a multiple of 8 from 376 to 4096",
                   [](assay_backend& table) { table.axis_size = 4104; }},
        TableFault{"odd_algorithms", "states algorithm_size 217: expected what sizeof gives, a multiple of 8 from 216 to 4096",
                   [](assay_backend& table) { table.algorithm_size = 217; }},
        LEAVES_OUT(name), LEAVES_OUT(description), LEAVES_OUT(open), LEAVES_OUT(close), LEAVES_OUT(last_error), LEAVES_OUT(device_info),
        LEAVES_OUT(allocate), LEAVES_OUT(release), LEAVES_OUT(copy_to_device), LEAVES_OUT(copy_to_host), LEAVES_OUT(fill),
        LEAVES_OUT(stream_create), LEAVES_OUT(stream_destroy), LEAVES_OUT(synchronize), LEAVES_OUT(supports), LEAVES_OUT(numerics),
        LEAVES_OUT(workspace_bytes), LEAVES_OUT(execute), ONE_OF(capture_begin, kCapture), ONE_OF(capture_end, kCapture),
        ONE_OF(graph_launch, kCapture), ONE_OF(graph_destroy, kCapture), ONE_OF(event_create, kEvents), ONE_OF(event_destroy, kEvents),
        ONE_OF(event_record, kEvents), ONE_OF(event_elapsed, kEvents),
        TableFault{"list_axes_alone", kAxes, [](assay_backend& table) {
          table.list_axes = [](assay_context*, assay_axis*, std::int32_t, std::int32_t*) { return ASSAY_OK; };
          table.set_axis = nullptr;
        }},
        TableFault{"set_axis_alone", kAxes, [](assay_backend& table) {
          table.set_axis = [](assay_context*, const char*, const char*) { return ASSAY_OK; };
          table.list_axes = nullptr;
        }}),
    [](const auto& each) { return each.param.name; });
// clang-format on

TEST(TableWithout, OptionalFunctionsIsTaken) {
  assay_backend table = *reference_backend();
  table.capture_begin = nullptr;
  table.capture_end = nullptr;
  table.graph_launch = nullptr;
  table.graph_destroy = nullptr;
  table.event_create = nullptr;
  table.event_destroy = nullptr;
  table.event_record = nullptr;
  table.event_elapsed = nullptr;
  table.list_algorithms = nullptr;
  table.list_axes = nullptr;
  table.set_axis = nullptr;
  Backend backend(table);
  EXPECT_FALSE(backend.can_capture());
  table.struct_size += 64;  // one with more functions than this program knows
  EXPECT_FALSE(Backend(table).can_capture());
}

struct Call {
  std::array<std::int64_t, 3> splits{3, 0, 5};
  std::array<std::int64_t, 4> offsets;
  assay_parameter parameter{"stride", ASSAY_INTEGER, 7, 0, nullptr};
  assay_tensor input{"splits", ASSAY_I64, 1, {3}, nullptr, 24};
  assay_tensor output{"offsets", ASSAY_I64, 1, {4}, nullptr, 32};
  assay_call call{sizeof(assay_call), "splits_to_offsets", nullptr, 1, nullptr, 1, nullptr, 1, nullptr, 0, -1, 0, 0};

  Call() {
    offsets.fill(-7);
    input.data = splits.data();
    output.data = offsets.data();
    call.parameters = &parameter;
    call.inputs = &input;
    call.outputs = &output;
  }
  Call(const Call&) = delete;
};

struct BadCall {
  const char* name;
  assay_status status;
  const char* reported;
  void (*spoil)(Call&);
};
void PrintTo(const BadCall& bad, std::ostream* out) { *out << bad.name; }

// By supports() and by execute(), by each layer.
class ReferenceRefuses : public testing::TestWithParam<BadCall> {};

TEST_P(ReferenceRefuses, AndWritesNothing) {
  for (const char* layer : {"layer=fast", "layer=scalar"}) {
    Backend backend("reference", layer);
    assay_stream* stream = nullptr;
    ASSERT_EQ(backend.table().stream_create(backend.context(), &stream), ASSAY_OK);
    Call call;
    GetParam().spoil(call);
    EXPECT_EQ(backend.table().execute(backend.context(), stream, &call.call), GetParam().status) << layer;
    EXPECT_NE(backend.last_error().find(GetParam().reported), std::string::npos) << backend.last_error();
    for (const std::int64_t each : call.offsets) EXPECT_EQ(each, -7);
    backend.table().stream_destroy(backend.context(), stream);
  }
}

// clang-format off
const BadCall kBadCalls[] = {
    {"no_op", ASSAY_INVALID_ARGUMENT, "op", [](Call& call) { call.call.op = nullptr; }},
    {"unknown_op", ASSAY_NOT_SUPPORTED, "op 'x' is unknown", [](Call& call) { call.call.op = "x"; }},
    {"pinned_algorithm", ASSAY_NOT_SUPPORTED, "algorithm", [](Call& call) { call.call.algorithm = 0; }},
    {"unknown_parameter", ASSAY_NOT_SUPPORTED, "no attribute 'pace'", [](Call& call) { call.parameter.name = "pace"; }},
    {"unnamed_parameter", ASSAY_INVALID_ARGUMENT, "name of a parameter", [](Call& call) { call.parameter.name = nullptr; }},
    {"parameter_kind", ASSAY_INVALID_ARGUMENT, "stride", [](Call& call) { call.parameter.kind = static_cast<assay_parameter_kind>(9); }},
    {"parameter_without_text", ASSAY_INVALID_ARGUMENT, "stride", [](Call& call) { call.parameter.kind = ASSAY_TEXT; }},
    {"real_for_integer", ASSAY_INVALID_ARGUMENT, "stride", [](Call& call) { call.parameter.kind = ASSAY_REAL; }},
    {"unnamed_input", ASSAY_INVALID_ARGUMENT, "name of an input", [](Call& call) { call.input.name = nullptr; }},
    {"unknown_input", ASSAY_INVALID_ARGUMENT, "in/splits is absent", [](Call& call) { call.input.name = "rows"; }},
    {"no_input", ASSAY_INVALID_ARGUMENT, "in/splits is absent", [](Call& call) { call.call.input_count = 0; }},
    {"input_type", ASSAY_INVALID_ARGUMENT, "splits", [](Call& call) { call.input.dtype = ASSAY_F32; }},
    {"no_such_type", ASSAY_INVALID_ARGUMENT, "splits.dtype", [](Call& call) { call.input.dtype = static_cast<assay_dtype>(99); }},
    {"rank", ASSAY_INVALID_ARGUMENT, "splits.rank", [](Call& call) { call.input.rank = 5; }},
    {"negative_extent", ASSAY_INVALID_ARGUMENT, "splits.shape", [](Call& call) { call.input.shape[0] = -1; }},
    {"huge_extent", ASSAY_INVALID_ARGUMENT, "shape", [](Call& call) {
       call.input.rank = 2;
       call.input.shape[0] = call.input.shape[1] = std::int64_t{1} << 40;
     }},
    {"input_shorter_than_its_shape", ASSAY_INVALID_ARGUMENT, "splits.bytes", [](Call& call) { call.input.bytes = 16; }},
    {"output_shorter_than_its_shape", ASSAY_INVALID_ARGUMENT, "offsets.bytes", [](Call& call) { call.output.bytes = 24; }},
    {"input_without_data", ASSAY_INVALID_ARGUMENT, "splits.data", [](Call& call) { call.input.data = nullptr; }},
    {"output_without_data", ASSAY_INVALID_ARGUMENT, "offsets.data", [](Call& call) { call.output.data = nullptr; }},
    {"output_shape", ASSAY_INVALID_ARGUMENT, "offsets", [](Call& call) {
       call.output.shape[0] = 3;
       call.output.bytes = 24;
     }},
    {"output_type", ASSAY_INVALID_ARGUMENT, "offsets", [](Call& call) { call.output.dtype = ASSAY_E4M3; call.output.bytes = 4; }},
    {"unknown_output", ASSAY_NOT_SUPPORTED, "no output 'sums'", [](Call& call) { call.output.name = "sums"; }},
    {"negative_split", ASSAY_INVALID_ARGUMENT, "splits", [](Call& call) { call.splits[2] = -5; }},
    {"overflow", ASSAY_INVALID_ARGUMENT, "", [](Call& call) { call.splits[2] = INT64_MAX / 2; }},
};
// clang-format on
INSTANTIATE_TEST_SUITE_P(Calls, ReferenceRefuses, testing::ValuesIn(kBadCalls), [](const auto& each) { return each.param.name; });

TEST(Reference, AnswersAGoodCall) {
  Backend backend("reference");
  assay_stream* stream = nullptr;
  ASSERT_EQ(backend.table().stream_create(backend.context(), &stream), ASSAY_OK);
  Call call;
  EXPECT_EQ(backend.table().supports(backend.context(), &call.call), ASSAY_OK);
  EXPECT_EQ(call.offsets, (std::array<std::int64_t, 4>{-7, -7, -7, -7}));
  EXPECT_EQ(backend.table().execute(backend.context(), stream, &call.call), ASSAY_OK) << backend.last_error();
  EXPECT_EQ(call.offsets, (std::array<std::int64_t, 4>{0, 21, 21, 56}));
  backend.table().stream_destroy(backend.context(), stream);
}

// Captured calls run at each launch of the graph, on the contents that memory then has.
TEST(Reference, ReplaysWhatWasCaptured) {
  Backend backend("reference");
  const assay_backend& table = backend.table();
  assay_stream* stream = nullptr;
  assay_graph* graph = nullptr;
  Call call;
  ASSERT_EQ(table.stream_create(backend.context(), &stream), ASSAY_OK);
  EXPECT_EQ(table.capture_end(backend.context(), stream, &graph), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(backend.last_error(), "the stream is not being captured");
  ASSERT_EQ(table.capture_begin(backend.context(), stream), ASSAY_OK);
  EXPECT_EQ(table.capture_begin(backend.context(), stream), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(backend.last_error(), "the stream is being captured already");
  ASSERT_EQ(table.execute(backend.context(), stream, &call.call), ASSAY_OK);
  EXPECT_EQ(call.offsets[0], -7) << "a captured call is not carried out";
  ASSERT_EQ(table.capture_end(backend.context(), stream, &graph), ASSAY_OK);
  call.call.op = "gone";
  call.input.name = "gone";
  call.parameter.integer = 1;  // parameters are captured, contents of tensors are not
  for (const std::int64_t rows : {5, 6}) {
    call.splits[2] = rows;
    call.offsets.fill(-7);
    ASSERT_EQ(table.graph_launch(backend.context(), graph, stream), ASSAY_OK) << backend.last_error();
    EXPECT_EQ(call.offsets, (std::array<std::int64_t, 4>{0, 21, 21, 21 + 7 * rows}));
  }
  table.graph_destroy(backend.context(), graph);
  table.stream_destroy(backend.context(), stream);
}

TEST(Reference, HasNoMemoryForTooMuch) {
  Backend backend("reference");
  void* data = nullptr;
  for (const std::int64_t bytes : {std::int64_t{-1}, std::int64_t{1} << 60}) {
    EXPECT_EQ(backend.table().allocate(backend.context(), bytes, &data), ASSAY_OUT_OF_MEMORY);
    EXPECT_EQ(data, nullptr);
    EXPECT_EQ(backend.last_error(), "the host has no " + std::to_string(bytes) + " bytes");
  }
}

}  // namespace
}  // namespace assay::conformance
