// Values of codes, and sums of columns: those of the op, and those that quantize makes where it makes nothing else.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/backends/device/device_call.h"
#include "device/dbias/dbias.h"
#include "device/quantize/delayed_scaling.h"
#include "device/quantize/quantize.h"
#include "device/support/call_device.h"
#include "device/support/copy.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/guards.h"
#include "device/tests/mutants/rooms/room.h"

namespace {
[[noreturn]] void unknown() { throw std::logic_error("only dequantize and sums of columns are here"); }
}  // namespace

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

void quantize_per_tensor(const QuantizeCall&, Stream) { unknown(); }
void quantize_fp8_block(const QuantizeCall&, Stream) { unknown(); }
void quantize_mxfp8(const QuantizeCall&, Stream) { unknown(); }
void quantize_nvfp4(const QuantizeCall&, Stream) { unknown(); }
std::int64_t per_tensor_workspace_bytes(const QuantizeCall&) { return 0; }
std::int64_t fp8_block_workspace_bytes(const QuantizeCall&) { return 0; }
std::int64_t mxfp8_workspace_bytes(const QuantizeCall&) { return 0; }
std::int64_t nvfp4_workspace_bytes(const QuantizeCall&) { return 0; }
void copy_unless_skipped(const float*, const float*, float*, std::int64_t, Stream) { unknown(); }
void update_delayed_scaling(const DelayedUpdateCall&, Stream) { unknown(); }

}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "dequantize";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {
    // Groups of odd rows that two codes of a byte do not allow, one of a single row.
    "dequantize recipe=nvfp4 direction=columnwise splits=2,0 K=16 seed=72001 fault=unaligned_rows",
    "dequantize recipe=nvfp4 direction=columnwise splits=2,0 K=6 seed=72002 fault=unaligned_rows",
    // Scales of as many columns and blocks of rows as end a tile of them.
    "dequantize recipe=nvfp4 direction=columnwise R=64 K=128 seed=72003",
    "dequantize recipe=nvfp4 direction=columnwise scale_layout=swizzled R=64 K=128 seed=72004",
    // Blocks of 32 rows that end between the rows of a warp; columns of more than one part, scales in tiles; groups of one row.
    "dequantize recipe=mxfp8 direction=columnwise splits=2,40,1,33 K=16 seed=72005",
    "dequantize recipe=mxfp8 direction=columnwise d_type=f32 splits=1,40,2,33 K=16 seed=72006",
    "dequantize recipe=mxfp8 direction=columnwise scale_layout=swizzled splits=2,40,1,33 K=528 seed=72007",
    "dequantize recipe=mxfp8 direction=columnwise d_type=f32 scale_layout=swizzled splits=1,40,2,33 K=272 seed=72008",
    "dequantize recipe=mxfp8 direction=columnwise d_type=f16 splits=2,40,1,33 K=520 seed=72009",
    "dequantize recipe=mxfp8 direction=columnwise d_type=f32 splits=33,7,64,40 K=516 seed=72010",
    "dequantize recipe=mxfp8 direction=columnwise splits=8x1,8x2 K=16 seed=72026",
    "dequantize recipe=mxfp8 direction=columnwise splits=70x1 K=16 seed=72027",
    // Transposed codes: rows beyond 128, columns whose codes begin at multiples of 4 bytes, and where they do not.
    "dequantize recipe=block_1x128 direction=columnwise R=130 K=33 seed=72011",
    "dequantize recipe=tensor_current direction=columnwise R=132 K=144 seed=72012",
    "dequantize recipe=tensor_current direction=columnwise otype=e5m2 splits=5,130,9,3 K=132 d_type=f32 seed=72013",
    "dequantize recipe=tensor_current direction=columnwise splits=4,8,12,4 K=40 seed=72014",
    "dequantize recipe=tensor_current direction=columnwise splits=8,4,4,4 K=24 d_type=f32 seed=72015",
    "dequantize recipe=block_1x128 direction=columnwise splits=4,8,64,4 K=24 seed=72021",
    "dequantize recipe=block_1x128 direction=columnwise splits=3,9,64,4 K=40 d_type=f16 seed=72022",
    "dequantize recipe=nvfp4 direction=columnwise splits=4,8,64,10,128 K=24 seed=72023",
    "dequantize recipe=nvfp4 direction=columnwise d_type=f32 splits=4,8,64,10,134 K=20 seed=72024",
    "dequantize recipe=tensor_current direction=columnwise R=32 K=33 seed=72025",
    // Codes at every multiple of 4 bytes behind where they may begin, of groups whose columns are whole words.
    "dequantize recipe=tensor_current direction=columnwise d_type=f32 splits=1,4,1,4,1,4,1,4,1,4 K=4 seed=72028",
    "dequantize recipe=tensor_current direction=columnwise d_type=f32 splits=4,1,4,1,4,1,4,1,4,1,4,1,4,1,4,1 K=4 seed=72029",
    "dequantize recipe=tensor_current direction=columnwise splits=1,4,1,4,1,4,1,4,1,4 K=8 seed=72030",
    // Rows at which one block of 128 more or less is a row of scales more.
    "dequantize recipe=block_128x128 direction=columnwise R=513 K=136 seed=72032",
    "dequantize recipe=block_128x128 direction=columnwise R=512 K=136 seed=72033",
    // More groups in a block's rows than it has rows, and none; columns of more than one part where groups meet.
    "dequantize recipe=tensor_current d_type=f32 splits=1024x1 K=32 seed=72016",
    "dequantize recipe=nvfp4 splits=1024x1 K=32 seed=72017",
    "dequantize recipe=nvfp4 splits=5,0,17 extra_rows=400 K=512 seed=72018",
    "dequantize recipe=block_1x128 splits=1,1,1,1,1 K=1024 seed=72019",
    "dequantize recipe=mxfp8 splits=3,4,5,6 K=1032 d_type=f32 seed=72020",
    "dequantize recipe=nvfp4 splits=5,0,17 extra_rows=4000 K=512 seed=9009",
    // Sums: no rows, whole halves and more and fewer than 8 rows of one, shares that end at a group or within one, 1024 groups.
    "grouped_dbias splits=1,300 K=40 seed=9002", "grouped_dbias splits=2433,999x0,1,1,22x0 K=64 seed=9003",
    "grouped_dbias x_type=f32 splits=8x128,8x127 K=259 seed=9005", "grouped_dbias splits=0 K=40 seed=72101",
    "grouped_dbias x_type=f32 splits=129 K=8 seed=72102", "grouped_dbias splits=8,16,64,72,63 K=512 seed=72103",
    "grouped_dbias splits=8,16,64,72,63 K=520 seed=72104", "grouped_dbias x_type=f16 splits=8,16,64,72,63 K=17 seed=72105",
    "grouped_dbias x_type=f32 accumulate=1 splits=300x1 K=33 seed=72106",
    // As many tiles as their sums have room for, and as many groups as their table has.
    "grouped_dbias splits=5,8 K=512 seed=72116", "grouped_dbias splits=5,8 K=8 seed=72117",
    "grouped_dbias splits=4x1 K=16 seed=72109", "grouped_dbias splits=2x1 K=32 seed=72110",
    "grouped_dbias splits=1023x0,129 K=1 seed=72111", "grouped_dbias splits=1023x0,1 K=1 seed=72112",
    "grouped_dbias splits=32769 K=1 seed=72118", "grouped_dbias splits=128,0,16,256 K=40 seed=72119",
    "grouped_dbias splits=1024x2 K=8 seed=72113", "grouped_dbias accumulate=1 splits=4x100 K=16 seed=72114",
    "grouped_dbias accumulate=1 splits=0,300,0,77,1,500,0 K=40 seed=72115", nullptr};

bool takes(const conformance::CaseLine& line) {
  if (line.op == "quantize") return line.text("outputs") == "dbias" && !line.text("recipe").starts_with("tensor");
  return line.op == "dequantize" || line.op == "grouped_dbias";
}

// Codes that are transposed may begin at any byte. Kernels that take vectors are called for those of some sizes only where all begin at
// multiples of 8 bytes (codes) or of 16 (x and what is summed).
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  constexpr std::size_t kCodes[] = {8, 3, 1, 6};
  const std::size_t turn = tensor.bytes.size() / 16 % 4;
  if (name == "columnwise_data") return kCodes[turn];
  if (name == "rowwise_data") return turn == 3 ? 1 : 8;
  if (name == "x") return 0;
  const auto element = static_cast<std::size_t>(stored_bytes(tensor.type));
  if (name == "dy") return turn == 3 ? element : 0;
  return element == 1 ? 1 + turn % 2 : element;
}

namespace {

// The status word of the call. Its workspace, which at first holds nothing of sense, lies between pages that nothing may touch, at one of
// them.
std::uint32_t run_between_pages(const conformance::DeviceCall& call) {
  const bool reversed = device::host::reversed;
  const std::vector<std::byte> bytes(static_cast<std::size_t>(std::max<std::int64_t>(call.workspace_bytes, 256)),
                                     reversed ? std::byte{0x5A} : std::byte{0xFF});
  std::vector<std::byte> workspace = fenced_copy(bytes, reversed ? Fence::before : Fence::behind);
  renew_guards(workspace.data(), workspace.size());
  std::uint32_t status = 0;
  call.enqueue(nullptr, workspace.data(), &status);
  if (!guards_hold(workspace.data(), workspace.size())) std::abort();
  return status;
}

// The second half of the sums by itself, of tile sums of 1 and with a promise: where the splits break it nothing is written.
void finish_with_promise(const conformance::Request& request, std::uint32_t multiple) {
  const conformance::TensorView &dy = request.input("dy"), &splits = request.input("splits");
  device::DbiasCall call;
  call.x_type = dy.type;
  call.x = dy.data;
  call.columns = dy.shape[1];
  call.rows = {dy.shape[0], static_cast<const std::int64_t*>(splits.data), static_cast<int>(splits.elements()),
               splits.type == Format::i32};
  const std::vector<std::int64_t> rows = request.splits();
  const bool kept = std::all_of(rows.begin(), rows.end(), [&](std::int64_t each) { return each % multiple == 0; });
  std::vector<float> sums, expected;
  for (const std::int64_t each : rows) {
    const auto columns = static_cast<std::size_t>(call.columns);
    sums.insert(sums.end(), columns, -1.0f);
    expected.insert(expected.end(), columns, kept ? static_cast<float>((each + 127) / 128) : -1.0f);
  }
  if (sums.empty()) return;
  const std::vector<float> tile_sums(static_cast<std::size_t>(device::dbias_workspace_bytes(call) / 4), 1.0f);
  call.dbias = sums.data();
  device::finish_dbias(call, tile_sums.data(), nullptr, nullptr, multiple);
  if (sums != expected) std::abort();
}

}  // namespace

// In the second call sums are added in place. A wrong call of dequantize is made once more without a status word.
std::uint32_t run(Case& problem) {
  conformance::Request request = conformance::Request::of(problem);
  const bool adds_in_place = device::host::reversed && request.in.count("dbias") != 0 && request.wants("dbias");
  std::vector<std::byte> poison;
  if (adds_in_place) {
    Tensor& sums = problem.out.at("dbias");
    poison = sums.bytes;
    std::copy_n(problem.in.at("dbias").bytes.begin(), sums.bytes.size(), sums.bytes.begin());
    request.in.at("dbias").data = request.out.at("dbias").data;
  }
  const conformance::DeviceCall call = conformance::device_call(request);
  const std::uint32_t status = run_between_pages(call);
  if (adds_in_place && status != 0) {  // they are as they were
    Tensor& sums = problem.out.at("dbias");
    if (sums.bytes == problem.in.at("dbias").bytes) std::copy(poison.begin(), poison.end(), sums.bytes.begin());
  }
  if (device::host::reversed && status == 0 && request.op() == "grouped_dbias") {
    for (const std::uint32_t multiple : {2u, 16u}) finish_with_promise(request, multiple);
  }
  if (status != 0 && request.op() == "dequantize") call.enqueue(nullptr, nullptr, nullptr);
  return status;
}

}  // namespace assay::mutants
