// FP8 block scaling.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "conformance/backends/device/quantize_call.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/in_workspace.h"
#include "device/tests/mutants/room.h"

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
    // Skipped calls of rows, and codes without scales.
    "quantize recipe=block_1x128 direction=rowwise noop=1 R=9 K=136 seed=72021",
    "quantize recipe=block_1x128 direction=rowwise noop=1 splits=9,8 K=136 seed=72022",
    "quantize recipe=block_128x128 direction=rowwise noop=1 R=33 K=136 seed=72023",
    "quantize recipe=block_128x128 direction=rowwise outputs=codes R=33 K=136 seed=72024",
    // Groups of whole vectors, of which the call may be told.
    "quantize recipe=block_1x128 splits=16,144,0,272,16 K=136 data=full_exponent seed=72011",
    "quantize recipe=block_128x128 dbias=1 splits=16,144,0,272,16 K=136 seed=72012",
    "quantize recipe=block_1x128 direction=columnwise splits=40x16,128 K=16 seed=72013",
    // Tiles one below another in more than one cluster, and rows that end in each part of a window.
    "quantize recipe=block_1x128 R=1037 K=24 data=full_exponent seed=72014",
    "quantize recipe=block_128x128 x_type=f16 otype=e5m2 dbias=1 splits=643,389,1,7,130 K=136 seed=72015", nullptr};

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

// How the rows of the groups stand to the promise that each has a multiple of kPromised. Unknown: they are no groups, or not in order,
// or the call may not look at them.
enum class Promise { unknown, kept, broken };
Promise promise_of(const Case& problem) {
  const auto splits = problem.in.find("splits");
  const auto codes = problem.out.find("columnwise_data");
  if (splits == problem.in.end() || problem.in.contains("noop") || codes == problem.out.end() || codes->second.bytes.empty()) {
    return Promise::unknown;
  }
  std::int64_t sum = 0, count = 0;
  bool kept = true;
  const Tensor& tensor = splits->second;
  const std::size_t each = tensor.type == Format::i32 ? 4 : 8;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += each, ++count) {
    std::int64_t rows = 0;
    std::memcpy(&rows, tensor.bytes.data() + at, each);
    if (each == 4) rows = static_cast<std::int32_t>(rows);
    if (rows < 0 || rows > problem.in.at("x").shape[0]) return Promise::unknown;
    sum += rows;
    kept = kept && rows % kPromised == 0;
  }
  if (sum > problem.in.at("x").shape[0]) return Promise::unknown;
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

}  // namespace

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;  // of the device that has clusters
  const Promise promise = promise_of(problem);
  if (promise == Promise::broken && !device::host::reversed) break_promise(problem);
  const bool told = promise == Promise::kept && device::host::reversed;
  return run_in_workspace(conformance::quantize_call(request_of(problem), told ? kPromised : 1));
}

}  // namespace assay::mutants
