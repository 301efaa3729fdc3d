// Calls that the device backend refuses, before anything is enqueued; and those without an output, whose contents are looked at all the
// same. No device is needed.
#ifdef ASSAY_HAS_DEVICE

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/gemm_path.h"
#include "conformance/backends/device/gemm_request.h"
#include "conformance/backends/device/linear_call.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "device/support/error.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr GemmOptions kEmulated{GemmPath::emulated, 0};

constexpr const char* kPlaced = "grouped_gemm kind=bf16 splits=0x0 N=8 K=8 grouped_layout=masked max_m=8 seed=1069";
constexpr const char* kWithC = "grouped_gemm kind=bf16 beta=1 splits=5,0,17 N=24 K=40 seed=1013";
constexpr const char* kAdded =
    "grouped_gemm kind=bf16 d_type=f32 beta=1 plan=unit=sm90.wgmma.f16,epilogue=reduce_add splits=5,0,17 N=8 K=16 seed=1066";
constexpr const char* kEmpty = "grouped_gemm kind=bf16 splits=5,0,17 N=0 K=40 seed=1";

// The call is refused as it is made: nothing may be enqueued then, the constants in the workspace among it.
TEST(GemmCall, IsRefusedBeforeAnythingIsEnqueued) {
  const struct {
    const char* line;
    void (*change)(Case&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {kWithC, [](Case& each) { each.attributes["dtype_d"] = std::string("i32"); each.in["c"] = make_tensor(Format::i32, {22, 24}); each.out["d"] = make_tensor(Format::i32, {22, 24}); }, "d_type"},
      {kWithC, [](Case& each) { each.attributes["plan"] = std::string("unit=sm90.wgmma.fp8.to_f16"); }, "type of the operand that supplies the rows"},
      {kWithC, [](Case& each) { each.attributes["plan"] = std::string("unit=sm90.wgmma.f16,slices=2x1,merge=sequential_f32"); }, "plan.slices"},
      {kWithC, [](Case& each) { each.attributes["plan"] = std::string("unit=sm90.wgmma.f16,epilogue=reduce_add"); }, "d_type"},
      {kAdded, [](Case& each) { each.attributes["beta"] = -1.0; }, "beta"},
      {kAdded, [](Case& each) { each.attributes["beta"] = std::nan(""); }, "beta"},
      {kAdded, [](Case& each) { each.attributes["beta"] = 0.0; }, "beta"},
      {kPlaced, [](Case& each) { each.attributes["dtype_d"] = std::string("i64"); each.out["d"] = make_tensor(Format::i64, {0, 8}); }, "d_type"},
      {kPlaced, [](Case& each) { each.attributes["plan"] = std::string("unit=sm80.mma.tf32"); }, "type of the operand"},
      {kEmpty, [](Case& each) { each.attributes["plan"] = std::string("unit=sm90.wgmma.fp8"); }, "type of the operand"},
      {"grouped_gemm kind=bf16 d_type=e4m3 splits=5,0,17 N=24 K=40 seed=1", [](Case& each) { each.attributes["beta"] = 1.0; each.in["c"] = make_tensor(Format::e4m3, {22, 24}); }, "beta"},
      {"grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 seed=1", [](Case& each) { each.out.clear(); each.attributes["plan"] = std::string("unit=sm80.mma.tf32"); }, "type of the operand"},
  };
  // clang-format on
  for (const auto& row : rows) {
    SCOPED_TRACE(row.line);
    Case problem = generate(parse_case_line(row.line));
    for (const OutputSpec& spec : outputs_of(Request::of(problem))) problem.out[spec.name] = make_tensor(spec.type, spec.shape);
    ASSERT_NO_THROW(gemm_call(Request::of(problem), kEmulated));
    row.change(problem);
    try {
      gemm_call(Request::of(problem), kEmulated);
      FAIL() << row.reported << " was taken";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << row.reported << ": " << error.what();
    }
  }
}

// Wrong contents of a call are reported, whatever is requested: a D that is not goes to the workspace.
TEST(GemmCall, OfNoOutputHasRoomForD) {
  Case problem = generate(parse_case_line("grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 seed=1"));
  const std::int64_t without = gemm_call(Request::of(problem), kEmulated).workspace_bytes;
  problem.out["d"] = make_tensor(Format::bf16, {22, 24});
  const std::int64_t with = gemm_call(Request::of(problem), kEmulated).workspace_bytes;
  EXPECT_EQ(without - with, (22 * 24 * 2 + 255) / 256 * 256);
}

// The same of every op that has splits or a map of rows: something is enqueued, which without a device cannot be.
TEST(EveryCall, LooksAtItsContentsWithoutAnOutput) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
    GTEST_SKIP() << "memory of the host would be read by the device";
  cudaGetLastError();
  for (const char* text : {"dequantize recipe=mxfp8 splits=32,0,64 K=64 seed=1",
                           "dequantize recipe=tensor_current splits=5,0,7 K=0 seed=1",
                           "swizzle recipe=mxfp8 splits=32,0,64 K=64 seed=1",
                           "unswizzle recipe=nvfp4 splits=32,0,64 K=64 seed=1",
                           "grouped_dbias splits=5,0,7 K=16 seed=1",
                           "grouped_dbias splits=5,0,7 K=0 seed=1",
                           "quantize recipe=mxfp8 splits=32,0,64 K=64 seed=1",
                           "quantize recipe=nvfp4 splits=32,0,64 K=0 seed=1",
                           "quantize recipe=block_1x128 splits=32,0,64 K=128 noop=1 seed=1",
                           "splits_to_offsets splits=3,0,5 stride=7",
                           "splits_to_offsets_multi splits=3,0,5 outputs=1:i64",
                           "splits_to_offsets_2d first=3,0,5 last=1,2,3",
                           "quantize_by_rule preset=deepgemm splits=32,0,64 K=256 seed=1",
                           "permute R=5 topk=2 K=16 seed=1",
                           "unpermute R=5 topk=2 K=16 seed=1",
                           "linear_forward recipe=fp8_block splits=32,0,64 N=32 K=32 seed=1",
                           "linear_forward recipe=none splits=32,0,64 N=0 K=32 seed=1",
                           "linear_dgrad recipe=none splits=32,0,64 N=32 K=32 seed=1",
                           "linear_wgrad recipe=mxfp8 splits=32,0,64 N=32 K=32 seed=1",
                           "grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 seed=1",
                           "grouped_gemm kind=bf16 splits=5,0,17 N=0 K=40 seed=1"}) {
    SCOPED_TRACE(text);
    Case problem = generate(parse_case_line(text));
    const Request request = Request::of(problem);
    const DeviceCall made = request.op() == "grouped_gemm" ? gemm_call(request, kEmulated)
                            : is_linear(request)           ? linear_call(request, kEmulated)
                                                           : device_call(request);
    alignas(256) std::uint32_t status[64] = {};
    std::vector<std::byte> memory(static_cast<std::size_t>(made.workspace_bytes) + 256);
    const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    EXPECT_THROW(made.enqueue(nullptr, reinterpret_cast<void*>(address), status), device::CudaError);
  }
}

}  // namespace
}  // namespace assay::conformance

#endif
