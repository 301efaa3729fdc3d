// Offsets of groups, block scales between compact and 128x4 order, the check of splits by itself; sums of columns, which find their
// groups by the same table; that table, and the small kernels of a layer, by themselves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/backends/device/device_call.h"
#include "conformance/backends/device/quantize_call.h"
#include "conformance/ops/words.h"
#include "device/quantize/delayed_scaling.h"
#include "device/support/call_device.h"
#include "device/support/error.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/linear_pieces.h"
#include "device/tests/mutants/rooms/room.h"
#include "device/tests/mutants/rooms/table_reader.h"

namespace {
[[noreturn]] void unknown() { throw std::logic_error("this op is not here"); }
}  // namespace

namespace assay::device {

CallDevice::CallDevice(Stream, std::initializer_list<NamedTensor>) {}
CallDevice::~CallDevice() = default;

void update_delayed_scaling(const DelayedUpdateCall&, Stream) { unknown(); }

}  // namespace assay::device

namespace assay::conformance {

DeviceCall quantize_call(const Request&, std::int64_t) { unknown(); }

}  // namespace assay::conformance

namespace assay::mutants {

const char* const kRoom = "layout";

// What the catalogue has not.
const char* const kLines[] = {
    // More than 1,024 values, or large ones: sums in 64 bits. Zeros, values that end within a thread's four, a sum that just fits.
    "splits_to_offsets splits=1025x0", "splits_to_offsets splits=zipf(1500,100000,7)",
    "splits_to_offsets splits=1024x0,9223372036854775807,0", "splits_to_offsets_multi splits=2147483647,0,0 outputs=1:i32",
    "splits_to_offsets splits=991x0,4294967296", "splits_to_offsets splits=32x4294967296",
    "splits_to_offsets_2d first=1025x0 last=1025x5", "splits_to_offsets_2d first=1025x3 last=1025x0",
    "splits_to_offsets_2d first=2,3 last=4294967296,5",
    // Faults beside a 0, a product of 2^64 - 1.
    "splits_to_offsets_2d first=3,5,0 last=0,8,3 fault=negative_split",
    "splits_to_offsets_2d first=0,5 last=3,8 fault=negative_split",
    "splits_to_offsets_2d first=1,0,0 last=1,0,6148914691236517205 fault=sum_overflow",
    // A value below 0 beside a sum that just fits.
    "splits_to_offsets splits=0,9223372036854775807,0 fault=negative_split",
    "splits_to_offsets_2d first=0,9223372036854775807,0 last=0,1,0 fault=negative_split",
    // Sums of which the last warp has a part: of 2, 4, 5, 31 and 32 warps.
    "splits_to_offsets_2d first=33x0 last=33x1 x_type=i32 fault=sum_overflow",
    "splits_to_offsets splits=128x0,1 fault=sum_overflow", "splits_to_offsets splits=128x0 fault=sum_overflow",
    "splits_to_offsets_2d first=992x0 last=992x1 x_type=i32 fault=sum_overflow",
    "splits_to_offsets_2d first=1024x0 last=1024x1 x_type=i32 fault=sum_overflow",
    // All lanes of a warp have a value.
    "splits_to_offsets splits=32x1 fault=negative_split", "splits_to_offsets_multi splits=51x1 outputs=1:i32 fault=sum_overflow",
    // As many groups as lanes, and one more.
    "swizzle recipe=mxfp8 splits=32x4 K=256 seed=71101", "swizzle recipe=mxfp8 splits=32x4 K=256 seed=71102 fault=excess_rows",
    "swizzle recipe=mxfp8 splits=33x4 K=256 seed=71103", "grouped_dbias splits=32x4 K=8 seed=71104 fault=excess_rows",
    "grouped_dbias splits=33x4 K=8 seed=71105",
    // Nothing to compute: the splits are checked all the same.
    "grouped_dbias splits=32,0,64 K=0 seed=71107 fault=excess_rows",
    "swizzle recipe=mxfp8 splits=32,0,64 K=0 seed=71106 fault=negative_split", nullptr};

bool takes(const conformance::CaseLine& line) {
  constexpr std::string_view kOps[] = {
      "swizzle", "unswizzle", "grouped_dbias", "splits_to_offsets", "splits_to_offsets_multi", "splits_to_offsets_2d"};
  return std::find(std::begin(kOps), std::end(kOps), line.op) != std::end(kOps);
}

// Each lies where its elements may; words of compact scales are loaded whole, 16 bytes of swizzled ones, and x by 16 or one by one.
std::size_t begins_past(const std::string& name, const Tensor& tensor) {
  if (name == "swizzled") return 0;
  return name == "compact" ? 4 : static_cast<std::size_t>(stored_bytes(tensor.type));
}

namespace {

std::vector<std::int64_t> integers_of(const conformance::Request& request, const std::string& name) {
  const conformance::TensorView& tensor = request.input(name);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(tensor.type == Format::i32 ? static_cast<const std::int32_t*>(tensor.data)[i]
                                                : static_cast<const std::int64_t*>(tensor.data)[i]);
  }
  return values;
}

// The largest sum that every output can hold.
std::uint64_t largest_sum(const conformance::Request& request) {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto hold = [&](bool is_int32, std::int64_t stride) {
    const std::int64_t last = is_int32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
    if (stride > 0) most = std::min(most, last / stride);
  };
  if (request.op() == "splits_to_offsets") hold(false, request.integer_or("stride", 1));
  if (request.op() == "splits_to_offsets_2d") hold(request.input("first").type == Format::i32, 1);
  if (request.op() == "splits_to_offsets_multi") {
    const std::vector<OffsetsOutput> outputs = conformance::offsets_outputs_of(request);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (request.wants("offsets_" + std::to_string(i))) hold(outputs[i].is_int32, outputs[i].stride);
    }
  }
  return static_cast<std::uint64_t>(most);
}

// The bits that the status word of a call of offsets has to have: of values below 0, which count as 0, and of sums past int64, or,
// where nothing else is wrong, past an output.
std::uint32_t right_status(const conformance::Request& request) {
  const bool products = request.op() == "splits_to_offsets_2d";
  const std::vector<std::int64_t> first = integers_of(request, products ? "first" : "splits");
  const std::vector<std::int64_t> last = products ? integers_of(request, "last") : std::vector<std::int64_t>(first.size(), 1);
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint32_t status = 0;
  std::uint64_t sum = 0;  // at most 2^63
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::uint64_t value = 0;
    if (first[i] < 0 || last[i] < 0) {
      status |= device::kStatusNegativeSplit;
    } else if (__builtin_mul_overflow(first[i], last[i], &value) || value > kMost) {
      status |= device::kStatusOverflow;
      value = 0;
    }
    sum = std::min(sum + value, kMost + 1);
  }
  if (sum > kMost) return status | device::kStatusOverflow;
  return status == 0 && sum > largest_sum(request) ? device::kStatusOverflow : status;
}

// Of a call of sums of columns: the table for its splits, and for one tensor of as many rows.
bool tables_are_right(const conformance::Request& request, bool valid) {
  const conformance::TensorView& splits = request.input("splits");
  const std::int64_t capacity = request.input("dy").shape[0];
  const int groups = static_cast<int>(splits.elements());
  const device::Rows rows = splits.type == Format::i32
                                ? device::Rows::of_int32(capacity, static_cast<const std::int32_t*>(splits.data), groups)
                                : device::Rows{capacity, static_cast<const std::int64_t*>(splits.data), groups};
  return table_is_right(rows, integers_of(request, "splits"), valid) && table_is_right({capacity, nullptr, 1}, {capacity}, true);
}

}  // namespace

// A wrong call, unless it needs a workspace, is made once more without a status word. The second call is made again without outputs,
// and with an empty list of them where it has a list: its splits are checked all the same, but an output that is too narrow for its
// sums is no longer there.
std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;
  conformance::Request request = conformance::Request::of(problem);
  const conformance::DeviceCall call = conformance::device_call(request);
  const std::uint32_t status = run_in_workspace(call);
  if (request.op().starts_with("splits_to_offsets") && status != right_status(request)) std::abort();
  if (request.op() == "grouped_dbias" && !tables_are_right(request, status == 0)) std::abort();
  if (request.op() == "splits_to_offsets" && !linear_pieces_are_right(static_cast<int>(request.input("splits").elements())))
    std::abort();
  if (status != 0 && request.op() != "grouped_dbias") call.enqueue(nullptr, nullptr, nullptr);
  if (device::host::reversed) {
    const auto check = [&] {
      const bool reports = run_in_workspace(conformance::device_call(request)) != 0;
      if (status != device::kStatusOverflow && reports != (status != 0)) std::abort();
    };
    request.out.clear();
    check();
    if (request.op() == "splits_to_offsets_multi") {
      request.attributes["outputs"] = "";
      check();
    }
  }
  return status;
}

}  // namespace assay::mutants
