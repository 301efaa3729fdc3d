// The FP8 block GEMM of SM90, on what rooms/sm90 computes of its instructions.

#include "device/fp8_block_gemm/fp8_block_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/backends/device/gemm_request.h"
#include "conformance/backends/device/pow2_scales.h"
#include "device/support/multiprocessors.h"
#include "device/tests/emulated_gemm/poisoned_outputs.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/layout/each_column.h"
#include "device/tests/mutants/rooms/in_workspace.h"
#include "device/tests/mutants/rooms/room.h"
#include "device/tests/mutants/rooms/sm90/copy_engine.h"
#include "device/tests/mutants/rooms/sm90/products.h"
#include "device/tests/mutants/rooms/sm90/together.h"
#include "reference/types/error.h"

namespace assay::device {
int multiprocessors_of(Stream) { return 4; }
}  // namespace assay::device

namespace assay::mutants {

const char* const kRoom = "fp8_block_gemm";

const char* const kLines[] = {
    // A last round of stages that is not full, and whole ones; half tiles, and columns that end with a tile.
    "grouped_gemm kind=fp8_block splits=16 N=16 K=128 seed=1", "grouped_gemm kind=fp8_block splits=70,3 N=200 K=144 seed=2",
    "grouped_gemm kind=fp8_block d_type=f32 splits=16,0,130 N=256 K=16 seed=3",
    "grouped_gemm kind=fp8_block splits=100 N=264 K=16 seed=17",
    "grouped_gemm kind=fp8_block d_type=f16 splits=3,16 N=24 K=656 bias=1 seed=4",
    "grouped_gemm kind=fp8_block layout=NN d_type=f32 splits=16,40 N=144 K=40 seed=5",
    "grouped_gemm kind=fp8_block weight_block=1x128 d_type=f32 splits=16,40 N=136 K=272 seed=6",
    "grouped_gemm kind=fp8_block weight_block=1x128 plan=assay.sm90.fp8_block.scales_first splits=16,5 N=136 K=144 seed=7",
    // Rounds of stages in which both warpgroups multiply, the last one not full.
    "grouped_gemm kind=fp8_block splits=70 N=16 K=528 seed=14",
    // Groups with and without copies, and without rows between others.
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first splits=16,0,16 N=16 K=136 seed=8",
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first d_type=f32 splits=20,3,0,33 N=24 K=40 seed=9",
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first splits=600,32 N=16 K=16 seed=10",
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.rows_first d_type=f32 splits=140,0,32 N=16 K=16 seed=11",
    // Scales that are powers of two: halves of columns, their last 32, a last tile, rounds that are not full.
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first scales=pow2 splits=16,0,600 N=17 K=23 seed=21",
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first d_type=f32 scales=pow2 splits=16 N=136 K=327 "
    "seed=22",
    // A block that computes a tile without depth after another one; a beta that is 0 but for one.
    "grouped_gemm kind=fp8_block layout=NT plan=assay.sm90.fp8_block.scales_first splits=16,16,0,0,16 N=16 K=136 seed=15",
    "grouped_gemm kind=fp8_block d_type=f32 beta=-1 splits=16 N=16 K=16 seed=16",
    "grouped_gemm kind=fp8_block alpha=2 splits=16 N=16 K=16 seed=18",
    // No contraction: several tiles for a block, and a stage for each all the same.
    "grouped_gemm kind=fp8_block bias=1 splits=20,0,9,300 N=264 K=0 seed=19",
    // 33 tiles for two clusters of two, most rows beyond those of the group: the second cluster begins later.
    "grouped_gemm kind=fp8_block splits=1 extra_rows=255 N=8448 K=16 seed=20",
    "grouped_gemm kind=fp8_block layout=NT splits=3,16,0 N=16 K=16 seed=12 fault=negative_split",
    "grouped_gemm kind=fp8_block splits=3,16,0 N=16 K=16 seed=13 fault=excess_rows", nullptr};

const bool kDevice = [] {
  device::host::compute_capability = 90;
  return true;
}();

// Products that take less than seconds: tiles of 128 rows are multiplied whole.
bool takes(const conformance::CaseLine& line) {
  if (line.op != "grouped_gemm" || line.text("kind") != "fp8_block") return false;
  std::int64_t rows = 0, most = 0;
  for (const std::int64_t each : line.splits()) rows += each, most = std::max(most, each);
  return line.splits().size() <= 100 && rows <= 4096;
}

std::size_t begins_past(const std::string&, const Tensor&) { return 0; }

namespace {

using conformance::Request;

bool follows(const AccumulationPlan& plan, const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings) {
  return plan_line(*find_accumulation_plan(device::fp8_block_gemm_plan(call, settings))) == plan_line(plan);
}

device::Fp8BlockSettings settings_of(const conformance::GemmRequest& request) {
  const AccumulationPlan* const plan = request.plan() != nullptr ? request.plan() : plan_for(request.key());
  if (plan == nullptr) throw NotSupported("no plan is known");
  device::Fp8BlockSettings settings;
  settings.order =
      plan->promotion == Promotion::fma_rows_first ? device::Fp8BlockOrder::rows_first : device::Fp8BlockOrder::scales_first;
  if (!follows(*plan, request.shape(), settings)) throw NotSupported("the plan of another kernel");
  const bool reversed = device::host::reversed, squares = request.shape().weight_block == WeightBlock::b128x128;
  settings.multiprocessors = reversed ? 4 : 2;
  if (request.shape().layout != GemmLayout::NT && squares) settings.cluster = reversed ? 2 : 1;
  return settings;
}

// Tensors of the case, which are all that a call may read but its workspace.
std::vector<device::host::MemoryPart> tensors_of(const Case& problem) {
  std::vector<device::host::MemoryPart> made;
  for (const auto* tensors : {&problem.in, &problem.out}) {
    for (const auto& [name, tensor] : *tensors) made.push_back({tensor.bytes.data(), tensor.bytes.size()});
  }
  return made;
}

// Rows of the groups; none where the case has wrong ones, or no splits.
std::vector<std::int64_t> right_splits(const Case& problem, std::int64_t capacity) {
  std::vector<std::int64_t> rows;
  const auto found = problem.in.find("splits");
  if (found == problem.in.end()) return rows;
  const Tensor& splits = found->second;
  for (std::int64_t t = 0; t < splits.elements(); ++t) {
    rows.push_back(splits.type == Format::i64 ? splits.as<std::int64_t>()[t] : splits.as<std::int32_t>()[t]);
    capacity -= rows.back();
    if (rows.back() < 0 || capacity < 0) return {};
  }
  return rows;
}

// Codes of dy and x as device/layout/column_layout.h describes them with an alignment of 16: what lies between columns is NaN.
struct AlignedCodes {
  std::vector<std::byte> memory[2];

  AlignedCodes(const Case& problem, const std::vector<std::int64_t>& groups) {
    for (const int i : {0, 1}) {
      const std::vector<std::byte>& dense = problem.in.at(i == 0 ? "dy_columnwise_data" : "x_columnwise_data").bytes;
      const std::int64_t columns = std::get<std::int64_t>(problem.attributes.at(i == 0 ? "N" : "K"));
      const std::int64_t rows = std::accumulate(groups.begin(), groups.end(), std::int64_t{0});
      memory[i].assign(static_cast<std::size_t>((rows / 16 + 2 + static_cast<std::int64_t>(groups.size())) * 16 * columns),
                       std::byte{0xFF});
      device::each_column(groups, columns, [&](const device::ColumnPlace& column) {
        std::copy_n(dense.begin() + column.dense, column.rows, address(i) + column.aligned);
      });
    }
  }
  std::byte* address(int i) { return memory[i].data() + (-reinterpret_cast<std::uintptr_t>(memory[i].data()) & 15); }
  void add_to(std::vector<device::host::MemoryPart>& parts) {
    for (std::vector<std::byte>& each : memory) parts.push_back({each.data(), each.size()});
  }
};

std::uint32_t call(Case& problem, bool lists, const conformance::PromiseOptions& promises, AlignedCodes* aligned = nullptr) {
  conformance::GemmRequest request(Request::of(problem));
  if (aligned != nullptr) request.align_columns(aligned->address(0), aligned->address(1));
  const device::Fp8BlockSettings settings = settings_of(request);
  if (lists) request.pass_lists();
  request.promise(promises);
  device::check_fp8_block_gemm(request.shape(), settings);
  const std::int64_t bytes = device::fp8_block_gemm_workspace_bytes(request.shape(), settings);
  const std::int64_t own = request.parts().add(bytes);
  const auto enqueue = [&](device::Stream stream, void* workspace, std::uint32_t* status) {
    std::vector<device::host::MemoryPart> read = tensors_of(problem);
    if (aligned != nullptr) aligned->add_to(read);
    device::host::describe_memory(read, {workspace, static_cast<std::size_t>(request.parts().bytes())});
    if (!request.has_elements()) return request.check_contents(status, stream);
    device::GroupedGemmCall ready = request.bind(workspace, status, stream);
    ready.workspace = bytes == 0 ? nullptr : conformance::part<void>(workspace, own);
    ready.workspace_bytes = bytes;
    device::fp8_block_grouped_gemm(ready, settings, stream);
  };
  return run_in_workspace({request.parts().bytes(), enqueue});
}

// The same call with aligned columns has to give what `problem` has.
void check_aligned_columns(const Case& before, const Case& problem, const std::vector<std::int64_t>& rows) {
  Case again = before;
  AlignedCodes aligned(again, rows);
  if (call(again, false, {}, &aligned) != 0 || again.out.at("d").bytes != problem.out.at("d").bytes) std::abort();
}

// A promise that the splits break is reported, and nothing is written.
void break_promise(Case& problem) {
  const std::map<std::string, Tensor> before = problem.out;
  if (call(problem, false, {16, false}) != device::kStatusUnalignedRows) std::abort();
  for (const auto& [name, tensor] : before) {
    if (problem.out.at(name).bytes != tensor.bytes) std::abort();
  }
}

// Whether an NT product that may rely on it has scales that are powers of two.
bool has_pow2_scales(const Case& problem, const conformance::GemmRequest& request, const std::vector<std::int64_t>& rows) {
  const device::GroupedGemmCall& shape = request.shape();
  if (shape.layout != GemmLayout::NT || settings_of(request).order != device::Fp8BlockOrder::scales_first || rows.empty())
    return false;
  const auto are_pow2 = [&](const char* name, std::int64_t columns) {
    const Tensor& scales = problem.in.at(name);
    return conformance::are_pow2_scales({scales.as<float>(), static_cast<std::size_t>(scales.elements())}, rows, columns);
  };
  return are_pow2("dy_columnwise_scale_inv", shape.N) && are_pow2("x_columnwise_scale_inv", shape.K);
}

// One scale that is no power of two is reported, wherever it lies; what pads the scales is not.
void break_scales(const Case& before, bool of_dy) {
  const char* const name = of_dy ? "dy_columnwise_scale_inv" : "x_columnwise_scale_inv";
  const std::int64_t columns = std::get<std::int64_t>(before.attributes.at(of_dy ? "N" : "K")), pitch = (columns + 3) / 4 * 4;
  const std::int64_t all = before.in.at(name).elements();
  for (const std::int64_t at : {std::int64_t{0}, all - 1, pitch * (all / pitch - 1) + columns - 1}) {
    Case problem = before;
    problem.in.at(name).as<float>()[at] = 1.0f + 0x1p-8f;
    const bool is_in_use = at % pitch < columns;
    if (call(problem, false, {1, true}) != (is_in_use ? device::kStatusOtherScales : 0u)) std::abort();
  }
}

}  // namespace

std::uint32_t run(Case& problem) {
  const bool reversed = device::host::reversed;
  device::host::turns = reversed ? device::host::Turns::by_lane : device::host::Turns::by_block;
  device::host::copies_are_late = device::host::products_are_late = !reversed;
  const conformance::GemmRequest request(Request::of(problem));
  const std::vector<std::int64_t> rows = right_splits(problem, request.shape().rows.capacity);
  const bool keeps = std::all_of(rows.begin(), rows.end(), [](std::int64_t each) { return each % 16 == 0; });
  if (!keeps && request.shape().layout == GemmLayout::NT && request.has_elements()) break_promise(problem);
  const bool aligns = reversed && !rows.empty() && request.shape().layout == GemmLayout::NT && request.has_elements();
  const Case before = aligns ? problem : Case{};
  const bool pow2 = request.has_elements() && has_pow2_scales(problem, request, rows);
  if (pow2) break_scales(problem, reversed);
  const std::uint32_t status = call(problem, reversed, {reversed && keeps ? 16 : 1, pow2});
  if (aligns && status == 0) check_aligned_columns(before, problem, rows);
  return status;
}

}  // namespace assay::mutants
