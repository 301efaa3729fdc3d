// FP8 block scaling.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "conformance/backends/device/quantize_call.h"
#include "device/support/error.h"
#include "device/support/multiprocessors.h"
#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/layout/each_column.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::device {
int multiprocessors_of(Stream) { return 1; }  // so that small calls have short stacks too
}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "fp8_block";

// What the catalogue has with other sizes only, or not together.
const char* const kLines[] = {
    // Rows alone: blocks of few rows, zeros, every code, scales without codes, no columns.
    "quantize recipe=block_1x128 direction=rowwise R=9 K=136 data=zeros seed=72001",
    "quantize recipe=block_128x128 direction=rowwise R=33 K=136 data=zeros seed=72002",
    "quantize recipe=block_128x128 x_type=f16 direction=rowwise R=256 K=136 data=every_code seed=72003",
    "quantize recipe=block_128x128 direction=rowwise outputs=scale_inv R=32 K=48 seed=72004",
    "quantize recipe=block_1x128 direction=rowwise R=9 K=0 seed=72016",
    "quantize recipe=block_128x128 direction=rowwise R=9 K=0 seed=72017",
    "quantize recipe=block_1x128 splits=5,0,3 K=0 seed=72005",
    "quantize recipe=block_1x128 x_type=f32 splits=5,0,3 K=0 seed=72006",
    "quantize recipe=block_128x128 x_type=f16 eps=0.01 splits=497,15 K=64 data=every_code seed=72007",
    // More than 64 groups, whose rows begin at any byte; all rows in one of more than 1000 groups.
    "quantize recipe=block_1x128 direction=columnwise splits=541,64x1 K=64 seed=72008",
    "quantize recipe=block_1x128 direction=columnwise splits=525,64x1 K=64 seed=72009",
    "quantize recipe=block_1x128 direction=columnwise splits=3x0,1,124x0,1,895x0 K=8 seed=72010",
    // Groups of one row and of whole tiles, and of 127 rows in 128 columns, whose quotients are the least exact.
    "quantize recipe=block_1x128 direction=columnwise splits=1,256 K=8 seed=72018",
    "quantize recipe=block_1x128 direction=columnwise splits=127,1 K=128 seed=72019",
    "quantize recipe=block_1x128 direction=rowwise splits=100,29 K=8 seed=72020",
    "quantize recipe=block_1x128 direction=rowwise splits=260x1 K=8 seed=72025",
    "quantize recipe=block_1x128 direction=rowwise splits=5,200x0,3 K=8 seed=72026",
    "quantize recipe=block_128x128 dbias=1 splits=5,200x0,3,130,9 K=8 seed=72027",
    // Stacks, tall and short ones: of one group whose last row is the first of a stack, and of several; none without rows. Groups that
    // are just divided and just not. The next group with rows is the last of the 32 that a warp looks at, or behind them.
    "quantize recipe=block_1x128 direction=columnwise R=1153 K=136 seed=72080",
    "quantize recipe=block_1x128 direction=columnwise splits=37,1063 K=136 seed=72081",
    "quantize recipe=block_1x128 direction=columnwise splits=3x0 K=40 seed=72082",
    "quantize recipe=block_1x128 direction=columnwise splits=5,31x0,7,3 K=40 seed=72083",
    "quantize recipe=block_1x128 direction=columnwise splits=5,32x0,7,3 K=40 seed=72084",
    "quantize recipe=block_1x128 direction=columnwise splits=1,30x0,5,7,40x0,3 K=40 seed=72085",
    "quantize recipe=block_1x128 direction=columnwise splits=20x1 K=8 seed=72086",
    "quantize recipe=block_1x128 direction=columnwise splits=5x1 K=8 seed=72091",
    "quantize recipe=block_1x128 direction=columnwise splits=1000,1024,24 K=136 seed=72087",
    "quantize recipe=block_1x128 direction=columnwise splits=37,300,200,1203 K=136 seed=72088",
    // As many groups as a warp has lanes, and too many rows, where a tile is read alone.
    "quantize recipe=block_1x128 x_type=f32 splits=32x16 K=40 seed=72089",
    "quantize recipe=block_1x128 x_type=f32 splits=5,17,9 K=24 seed=72090 fault=excess_rows",
    // A split below 0 beside others that fill x: it may count as no row.
    "quantize recipe=block_1x128 splits=0,64x3 K=40 fault=negative_split seed=72030",
    "quantize recipe=block_128x128 direction=rowwise splits=0,17 K=40 fault=negative_split seed=72031",
    // Sums of columns of one tensor, which a promise that it breaks leaves out.
    "quantize recipe=block_1x128 dbias=1 R=65 K=24 seed=72032",
    // As many NaN as a maximum has elements, in rows and in columns.
    "quantize recipe=block_1x128 x_type=f16 eps=0.01 R=512 K=128 data=every_code seed=72033",
    "quantize recipe=block_1x128 x_type=f16 direction=columnwise R=4096 K=16 data=every_code seed=72034",
    "quantize recipe=block_1x128 x_type=f16 eps=0.01 direction=rowwise R=512 K=128 data=every_code seed=72035",
    // Only sums of columns: groups by one warp and by all threads, fewer tiles than blocks, and rows that are too many.
    "quantize recipe=block_128x128 outputs=dbias dbias=1 R=300 K=24 seed=72036",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=5,300 K=24 seed=72037",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=3x0,40 K=24 seed=72038",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=33x4 K=24 seed=72039",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=40x4,300 K=24 seed=72040",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=128x1 K=8 seed=72041",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=32x4 K=24 fault=excess_rows seed=72042",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=5,30 K=24 fault=excess_rows seed=72043",
    "quantize recipe=block_128x128 outputs=dbias dbias=1 splits=40x5 K=24 fault=excess_rows seed=72044",
    // Rows of groups without columns, and as many groups as a window has rows.
    "quantize recipe=block_1x128 direction=rowwise splits=5,4 K=0 seed=72045",
    "quantize recipe=block_1x128 direction=columnwise splits=128x1,200 K=8 seed=72046",
    // Scales of columns whose number a block of one row more or less would change.
    "quantize recipe=block_128x128 direction=columnwise R=514 K=264 seed=72028",
    "quantize recipe=block_128x128 direction=columnwise R=512 K=264 seed=72029",
    // Skipped calls of rows, and codes without scales.
    "quantize recipe=block_1x128 direction=rowwise noop=1 R=9 K=136 seed=72021",
    "quantize recipe=block_1x128 direction=rowwise noop=1 splits=9,8 K=136 seed=72022",
    "quantize recipe=block_128x128 direction=rowwise noop=1 R=33 K=136 seed=72023",
    "quantize recipe=block_128x128 direction=rowwise outputs=codes R=33 K=136 seed=72024",
    // Groups whose rows are multiples of 16, with that promise and without it.
    "quantize recipe=block_1x128 splits=16,144,0,272,16 K=136 data=full_exponent seed=72011",
    "quantize recipe=block_128x128 dbias=1 splits=16,144,0,272,16 K=136 seed=72012",
    "quantize recipe=block_1x128 direction=columnwise splits=40x16,128 K=16 seed=72013",
    // x from gate and up: of few rows, more than 1000 groups, promised multiples, no columns, columns at any byte, skipped.
    "quantize recipe=block_1x128 activation=swiglu direction=rowwise R=9 K=136 data=every_special seed=72047",
    "quantize recipe=block_1x128 activation=swiglu direction=rowwise splits=5,200x0,3 K=8 seed=72048",
    "quantize recipe=block_128x128 activation=swiglu x_type=f16 splits=16,144,0,272,16 K=136 data=full_exponent seed=72049",
    "quantize recipe=block_1x128 activation=swiglu direction=columnwise splits=541,64x1 K=64 seed=72050",
    "quantize recipe=block_1x128 activation=swiglu splits=5,0,3 K=0 seed=72051",
    "quantize recipe=block_1x128 activation=swiglu R=33 K=27 data=adversarial_gates seed=72052",
    // Wide blocks: one tile and an odd number of tiles side by side and below each other, skipped, without codes or scales, no columns.
    "quantize recipe=block_1x128 R=8320 K=8 data=full_exponent seed=72100",
    "quantize recipe=block_128x128 x_type=f16 otype=e5m2 R=8208 K=8 data=full_exponent seed=72101",
    "quantize recipe=block_1x128 R=4000 K=136 data=full_exponent seed=72102",
    "quantize recipe=block_128x128 x_type=f16 R=1552 K=520 data=full_exponent seed=72103",
    "quantize recipe=block_1x128 R=8208 K=8 data=zeros seed=72104", "quantize recipe=block_1x128 noop=1 R=8208 K=8 seed=72105",
    "quantize recipe=block_1x128 outputs=codes R=8208 K=8 seed=72106",
    "quantize recipe=block_128x128 outputs=scale_inv R=8208 K=8 seed=72107", "quantize recipe=block_1x128 R=8192 K=0 seed=72108",
    // Tiles one below another in more than one cluster, and rows that end in each part of a window.
    "quantize recipe=block_1x128 R=1037 K=24 data=full_exponent seed=72014",
    "quantize recipe=block_128x128 x_type=f16 otype=e5m2 dbias=1 splits=643,389,1,7,130 K=24 seed=72015", nullptr};

bool takes(const conformance::CaseLine& line) {
  return line.op == "quantize" && (line.text("recipe") == "block_1x128" || line.text("recipe") == "block_128x128");
}

// x lies at a multiple of 16, rowwise codes of some tensors at one of 8, columnwise codes at any byte of a window of 32.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "x") return 0;
  if (name == "rowwise_data") return tensor.shape.front() % 3 == 0 ? 3 : 8;
  if (name == "columnwise_data") return tensor.bytes.size() / 8 % 32;
  return static_cast<std::size_t>(stored_bytes(tensor.type));
}

namespace {

constexpr std::int64_t kPromised = 16;

// Rows of the groups, or of the one tensor.
std::vector<std::int64_t> group_rows(const Case& problem) {
  const auto splits = problem.in.find("splits");
  if (splits == problem.in.end()) return {problem.in.at("x").shape[0]};
  const Tensor& tensor = splits->second;
  const std::size_t each = tensor.type == Format::i32 ? 4 : 8;
  std::vector<std::int64_t> rows;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += each) {
    std::int64_t own = 0;
    std::memcpy(&own, tensor.bytes.data() + at, each);
    rows.push_back(each == 4 ? static_cast<std::int32_t>(own) : own);
  }
  return rows;
}

// The bits that the status word has to have: of splits below 0, and of one or all together above the rows of x.
std::uint32_t right_status(const Case& problem) {
  const std::int64_t capacity = problem.in.at("x").shape[0];
  std::uint32_t status = 0;
  std::int64_t sum = 0;
  for (const std::int64_t own : group_rows(problem)) {
    if (own < 0) status |= device::kStatusNegativeSplit;
    if (own > capacity) status |= device::kStatusSplitsExceedRows;
    sum += own < 0 || own > capacity ? 0 : own;
  }
  if (sum > capacity) status |= device::kStatusSplitsExceedRows;
  return status;
}

// How the rows of valid groups stand to the promise that each has a multiple of kPromised, on which codes of columns rely.
enum class Promise { unknown, kept, broken };
Promise promise_of(const Case& problem) {
  const auto codes = problem.out.find("columnwise_data");
  const std::vector<std::int64_t> rows = group_rows(problem);
  if (problem.in.contains("noop") || right_status(problem) != 0) return Promise::unknown;
  if (rows.empty() || codes == problem.out.end() || codes->second.bytes.empty()) return Promise::unknown;
  const bool kept = std::all_of(rows.begin(), rows.end(), [](std::int64_t own) { return own % kPromised == 0; });
  return kept ? Promise::kept : Promise::broken;
}

// An output without elements has an address at which nothing may be stored, as a caller of the library may have it.
conformance::Request request_of(Case& problem) {
  static void* const nothing = mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  conformance::Request request = conformance::Request::of(problem);
  for (auto& [name, output] : request.out) {
    if (output.bytes == 0) output.data = nothing;
  }
  return request;
}

// A call whose promise is broken has to say so, and to write nothing.
void break_promise(Case& problem) {
  const std::map<std::string, Tensor> before = problem.out;
  const std::uint32_t status = run_in_workspace(conformance::quantize_call(request_of(problem), kPromised));
  const auto is_same = [&](const auto& each) { return problem.out.at(each.first).bytes == each.second.bytes; };
  if (status != device::kStatusUnalignedRows || !std::all_of(before.begin(), before.end(), is_same)) std::abort();
}

// The same call with each column of codes at a multiple of 16 bytes: has to give the codes that `problem` has, and to write nothing
// outside the columns.
void check_aligned_columns(const Case& problem) {
  Case again = problem;
  const std::vector<std::byte>& dense = problem.out.at("columnwise_data").bytes;
  const std::vector<std::int64_t> groups = group_rows(problem);
  const std::int64_t capacity = problem.in.at("x").shape[0];
  const std::int64_t columns = static_cast<std::int64_t>(dense.size()) / capacity;
  constexpr std::byte kUnwritten{0xA7};
  std::vector<std::byte> memory(
      static_cast<std::size_t>((capacity + 16 * static_cast<std::int64_t>(groups.size()) + 32) * columns), kUnwritten);
  std::byte* const aligned = memory.data() + (-reinterpret_cast<std::uintptr_t>(memory.data()) & 15);
  conformance::Request request = request_of(again);
  request.out.at("columnwise_data").data = aligned;
  if (run_in_workspace(conformance::quantize_call(request, 1, 16)) != 0) std::abort();
  device::each_column(groups, columns, [&](const device::ColumnPlace& column) {
    std::byte* const at = aligned + column.aligned;
    if (!std::equal(at, at + column.rows, dense.begin() + column.dense)) std::abort();
    std::fill_n(at, column.pitch, kUnwritten);
  });
  if (std::any_of(memory.begin(), memory.end(), [](std::byte each) { return each != kUnwritten; })) std::abort();
}

}  // namespace

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;
  device::host::found_in_reverse = 0;  // a stack that begins at a place it has not written then begins in a group
  const Promise promise = promise_of(problem);
  if (promise == Promise::broken && !device::host::reversed) break_promise(problem);
  const bool told = promise == Promise::kept && device::host::reversed;
  const std::uint32_t status = run_in_workspace(conformance::quantize_call(request_of(problem), told ? kPromised : 1));
  if (status != right_status(problem)) std::abort();
  if (promise != Promise::unknown && !device::host::reversed) check_aligned_columns(problem);
  return status;
}

}  // namespace assay::mutants
