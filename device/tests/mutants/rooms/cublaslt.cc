// What surrounds a grouped product of cuBLASLt: the arrays that the library reads, copies of groups, D of groups without products,
// expanded scales, the bias. The library itself is left out: the emulated GEMM multiplies each group as the arrays describe it.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "device/cublaslt/bias.h"
#include "device/cublaslt/cublaslt_gemm.h"
#include "device/cublaslt/group_setup.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/tests/emulated_gemm/host_gemm.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/room.h"

namespace assay::mutants {

const char* const kRoom = "cublaslt";
const char* const kLines[] = {
    "grouped_gemm kind=bf16 splits=5,0,9 N=8 K=8 seed=1 bias=1", "grouped_gemm kind=bf16 splits=8,29x0,3,5,7,2 N=8 K=8 seed=2",
    "grouped_gemm kind=bf16 splits=3,30x0,5 N=8 K=8 seed=3", "grouped_gemm kind=bf16 splits=3,31x0,5 N=8 K=8 seed=4",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0,9,1 N=8 K=8 beta=0.5 seed=5",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0 N=8 K=8 alpha=-1 seed=6",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0 N=8 K=8 beta=-1 seed=7",
    "grouped_gemm kind=bf16 layout=NT splits=5,0 N=8 K=8 alpha=nan seed=8",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0 N=8 K=8 alpha=nan seed=8",
    "grouped_gemm kind=bf16 layout=NT splits=3x0 N=3 K=5 seed=9",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=48x0 N=7 K=1 seed=10",
    "grouped_gemm kind=bf16 splits=1,3 N=8 K=0 seed=11",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3,31x0 N=8 K=8 seed=12",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3,38x0,5 N=8 K=8 seed=13",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=3,62x0,5 N=8 K=8 seed=14",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=17,0,33 N=16 K=16 seed=15",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=15,30,1 N=16 K=16 seed=16",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=2,14,5 N=16 K=16 seed=17",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=161,161,161 N=16 K=16 seed=18",
    "grouped_gemm kind=fp8_block d_type=f32 splits=5,0,4,9 N=16 K=16 seed=19",
    "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=5,0,9 N=16 K=16 seed=20",
    "grouped_gemm kind=mxfp8 d_type=f32 scale_layout=swizzled splits=32,0,32 N=16 K=32 seed=21",
    "grouped_gemm kind=nvfp4 d_type=f32 scale_layout=swizzled splits=16,0,16 N=32 K=32 seed=22",
    "grouped_gemm kind=nvfp4 layout=NT d_type=f32 splits=32,0,64 N=32 K=32 seed=22",
    "grouped_gemm kind=nvfp4 d_type=f32 splits=16,0,16 N=32 K=32 seed=22",
    "grouped_gemm kind=bf16 splits=5,0,9 N=8 K=8 seed=23 fault=negative_split",
    "grouped_gemm kind=bf16 splits=5,0,9 N=8 K=8 seed=24 fault=excess_rows",
    "grouped_gemm kind=bf16 splits=31x0,2 N=8 K=8 seed=25 fault=excess_rows",
    "grouped_gemm kind=bf16 splits=2,38x0,2 N=8 K=8 seed=26 fault=negative_split",
    "grouped_gemm kind=bf16 splits=2,38x0,2 N=8 K=8 seed=27 fault=excess_rows",
    "grouped_gemm kind=bf16 layout=NT d_type=f32 splits=5,0,9 N=8 K=8 seed=28 fault=negative_split",
    "grouped_gemm kind=nvfp4 layout=NT d_type=f32 scale_layout=swizzled splits=16,0,16 N=32 K=32 seed=29 fault=unaligned_rows",
    "grouped_gemm kind=bf16 splits=5,0,8 N=8 K=8 bias=1 seed=41",
    "grouped_gemm kind=fp8_block layout=NT d_type=f32 splits=33,0,9 N=16 K=16 seed=42",
    "grouped_gemm kind=bf16 splits=3,30x0,2 N=8 K=8 seed=43 fault=excess_rows",
    "grouped_gemm kind=bf16 splits=3,990x0,2 N=8 K=8 seed=44",
    "grouped_gemm kind=bf16 splits=3,1022x0,2 N=8 K=8 seed=45 fault=excess_rows",
    "grouped_gemm kind=fp8_block d_type=f32 splits=5,31x0,5,1 N=16 K=16 seed=46",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=129,129 N=16 K=96 seed=47",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=193 N=16 K=256 seed=48",
    // D is C in the second call: what is added to it before the product is there twice.
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=17,0,33 N=16 K=16 beta=0.5 seed=50",
    // Copies of which a thread has two vectors, and five; the first end where the copy of the next group begins.
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=15,65,1 N=16 K=6768 seed=51",
    "grouped_gemm kind=fp8_per_tensor layout=NT d_type=f32 splits=1 N=16 K=135184 seed=52",
    // Splits of which one is wrong, and no later group has rows.
    "grouped_gemm kind=bf16 splits=5,0 N=8 K=8 seed=53 fault=negative_split",
    "grouped_gemm kind=nvfp4 layout=NT d_type=f32 scale_layout=swizzled splits=16,0,16 N=32 K=32 seed=54 fault=negative_split",
    nullptr};

bool takes(const conformance::CaseLine& line) {
  if (line.op != "grouped_gemm" || line.splits().size() > 1100) return false;
  const auto text = [&](const char* name) { return line.has(name) ? line.text(name) : std::string(); };
  for (const char* name : {"plan", "grouped_layout", "scaling"}) {
    if (line.has(name) && !text(name).empty() && text(name) != "splits" && text(name) != "per_group") return false;
  }
  return true;
}

std::size_t begins_past(const std::string&, const Tensor&) { return 0; }

namespace {

using device::aligned_copy_bytes;
using device::EmulatedArithmetic;
using device::GemmOperand;
using device::GemmSide;
using device::GemmSides;
using device::group_arrays;
using device::group_arrays_bytes;
using device::GroupArrays;
using device::GroupedGemmCall;
using device::GroupSetupOptions;
using device::Rows;
using device::type_bits;
namespace emulated = device::emulated;

// A matrix of a group as the arrays describe it to the library, of a product or not: column-major, addresses and columns at multiples of
// 16 bytes, a leading dimension of at least 1 and at least the rows, as BLAS has it.
struct Matrix {
  const void* data;
  std::int64_t rows, columns, leading;
  std::int64_t bits;
  void check() const {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && leading * bits % 128 == 0;
    if (!is_aligned || rows < 0 || columns < 0 || leading < std::max<std::int64_t>(rows, 1)) std::abort();
  }
};

// The same with columns that follow one another.
struct Packed {
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  std::vector<Block> memory;
  explicit Packed(const Matrix& from) {
    const auto bytes = static_cast<std::size_t>(from.rows * from.bits / 8), width = static_cast<std::size_t>(from.columns);
    const auto pitch = static_cast<std::size_t>(from.leading * from.bits / 8);
    memory.resize(bytes * width / 256 + 1);
    auto* to = reinterpret_cast<std::byte*>(memory.data());
    for (std::size_t column = 0; column < width; ++column)
      std::memcpy(to + column * bytes, static_cast<const std::byte*>(from.data) + column * pitch, bytes);
  }
};

// The product of a group as the arrays describe it: D [m,n] of depth k.
struct Described {
  Matrix a, b, d;
  std::int64_t n = 0, m = 0, k = 0;
};

Described describe(const GroupedGemmCall& call, const GroupArrays& arrays, int t) {
  const GemmSide columns = device::gemm_sides(call).columns, rows = device::gemm_sides(call).rows;
  Described of;
  of.a = {arrays.a[t], arrays.a_rows[t], arrays.a_columns[t], arrays.a_leading[t], type_bits(columns.operand->type)};
  of.b = {arrays.b[t], arrays.b_rows[t], arrays.b_columns[t], arrays.b_leading[t], type_bits(rows.operand->type)};
  of.d = {arrays.d[t], arrays.d_rows[t], arrays.d_columns[t], arrays.d_leading[t], type_bits(call.d_type)};
  for (const Matrix& each : {of.a, of.b, of.d}) each.check();
  Matrix c = of.d;
  c.data = arrays.c[t];
  c.check();
  of.n = of.d.rows, of.m = of.d.columns, of.k = columns.k_major ? of.a.rows : of.a.columns;
  const std::int64_t a_extent = columns.k_major ? of.a.columns : of.a.rows, b_extent = rows.k_major ? of.b.columns : of.b.rows;
  const std::int64_t b_depth = rows.k_major ? of.b.rows : of.b.columns;
  if (a_extent != of.n || b_extent != of.m || b_depth != of.k || of.d.leading != of.n) std::abort();
  return of;
}

// The product of group t as the library makes it from its arrays.
void multiply(const GroupedGemmCall& call, const GroupArrays& arrays, int t, const EmulatedArithmetic& arithmetic, bool blackwell,
              bool expanded) {
  const GemmSides sides = device::gemm_sides(call);
  const Described described = describe(call, arrays, t);
  const std::int64_t n = described.n, m = described.m, k = described.k;
  if (n == 0 || m == 0) return;
  if (k == 0) std::abort();  // the set-up writes D of such a group
  const Packed a(described.a), b(described.b);

  GroupedGemmCall one = call;
  one.rows = Rows{call.layout == GemmLayout::NT ? k : m, nullptr, 1, false};
  one.rows_multiple = 1;
  one.N = call.layout == GemmLayout::TN ? n : call.layout == GemmLayout::NN ? k : m;
  one.K = call.layout == GemmLayout::TN ? k : n;
  GemmOperand &of_a = call.layout == GemmLayout::NT ? one.x : one.w, &of_b = call.layout == GemmLayout::TN ? one.x : one.dy;
  const auto set = [](GemmOperand& operand, const Packed& packed, const void* scale) {
    operand.data = packed.memory.data(), operand.data_list = nullptr, operand.scale_inv_list = nullptr, operand.amax = nullptr;
    const bool scaled = operand.type != Format::bf16 && operand.type != Format::f16;
    operand.scale_inv = scaled ? scale : nullptr;
  };
  set(of_a, a, arrays.a_scale[t]);
  set(of_b, b, arrays.b_scale[t]);
  if (expanded) one.weight_block = WeightBlock::b1x128;
  const int pair = blackwell ? t : 0;
  one.alpha = blackwell ? arrays.alpha_of[t] : arrays.alpha;
  one.beta = blackwell ? arrays.beta_of[t] : arrays.beta;
  if (one.alpha != arrays.alpha + pair || one.beta != arrays.beta + pair) std::abort();
  if (call.kind == GemmKind::nvfp4) {  // the emulated GEMM multiplies both amax in itself
    const float* const alpha = call.alpha == nullptr ? nullptr : call.alpha + (call.scalars_per_group ? t : 0);
    const float *amax_a = sides.columns.operand->amax + t, *amax_b = sides.rows.operand->amax + t;
    const float product = (alpha == nullptr ? 1.0f : *alpha) * *amax_a * *amax_b * (1.0f / 7225344.0f);
    if (std::memcmp(&product, one.alpha, 4) != 0 && product == product) std::abort();
    one.alpha = alpha, of_a.amax = amax_a, of_b.amax = amax_b;
  }
  one.scalars_per_group = false;
  one.d = arrays.d[t], one.d_list = nullptr;
  one.c = arrays.c[t] == arrays.d[t] ? nullptr : arrays.c[t];
  one.bias = nullptr;
  alignas(256) std::uint32_t status[64] = {};
  one.status = status;
  const std::int64_t bytes = device::emulated_gemm_workspace_bytes(one, arithmetic);
  conformance::HostMemory workspace(bytes);
  one.workspace = workspace.blocks.data(), one.workspace_bytes = bytes;
  emulated::grouped_gemm_by(emulated::Route::generic, one, arithmetic, nullptr);
  if (status[0] != 0) std::abort();
}

bool is_taken(const GroupedGemmCall& call) {
  if (call.d_type != Format::f32 && call.d_type != Format::bf16 && call.d_type != Format::f16) return false;
  if (call.kind == GemmKind::mxfp8 && (call.scale_layout != ScaleLayout::swizzled || call.w.type == Format::e2m1)) return false;
  if (call.kind == GemmKind::nvfp4 && call.scale_layout != ScaleLayout::swizzled) return false;
  if (call.rows.capacity == 0 || call.N == 0 || call.K == 0) return true;
  try {
    device::require_aligned_operands(call);
    device::require_aligned_output(call);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

std::vector<std::int64_t> splits_of(const Case& problem) {
  const Tensor& tensor = problem.in.at("splits");
  std::vector<std::int64_t> splits;
  for (std::int64_t t = 0; t < tensor.elements(); ++t)
    splits.push_back(tensor.type == Format::i32 ? tensor.as<std::int32_t>()[t] : tensor.as<std::int64_t>()[t]);
  return splits;
}

// The status word that these splits have to give: what is wrong with them, where a wrong one counts as 0, or else with the rows of a
// group.
std::uint32_t right_status(const GroupedGemmCall& call, const std::vector<std::int64_t>& splits, std::int64_t row_unit) {
  std::uint32_t of_splits = 0, of_rows = 0;
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    if (split < 0) of_splits |= device::kStatusNegativeSplit;
    if (split > call.rows.capacity) of_splits |= device::kStatusSplitsExceedRows;
    if (split >= 0 && split <= call.rows.capacity) sum += split;
    if (split % row_unit != 0) of_rows |= device::kStatusUnalignedRows;
    if (call.kind == GemmKind::nvfp4 && call.layout == GemmLayout::NT && split % 2 != 0)
      of_rows |= device::kStatusOddPackedExtent;
  }
  if (sum > call.rows.capacity) of_splits |= device::kStatusSplitsExceedRows;
  return of_splits != 0 ? of_splits : of_rows;
}

}  // namespace

std::uint32_t run(Case& problem) {
  device::host::compute_capability = 90;
  const bool second = device::host::reversed;
  conformance::GemmRequest request(conformance::Request::of(problem));
  const AccumulationPlan* plan = request.plan() != nullptr ? request.plan() : plan_for(request.key());
  if (plan == nullptr) throw NotSupported("no plan is known");
  const EmulatedArithmetic arithmetic{plan, find_tensor_core_unit(plan->unit)};
  conformance::HostMemory own(request.parts().bytes());
  alignas(256) std::uint32_t status[64] = {};
  GroupedGemmCall call = request.bind(own.blocks.data(), status, nullptr);
  if (call.rows.groups == 0) return 0;
  // Not of these kernels.
  if (!is_taken(call) || plan->epilogue != GemmEpilogue::scaled_alpha_beta) throw NotSupported("cuBLASLt does not take the call");
  const bool blackwell = call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4 || call.scalars_per_group;
  conformance::HostLists lists;
  if (second) lists.take(call, problem);
  const GemmSides sides = device::gemm_sides(call);
  const std::int64_t copied_a = aligned_copy_bytes(call, sides.columns), copied_b = aligned_copy_bytes(call, sides.rows);
  const bool expanded =
      second && call.kind == GemmKind::fp8_block && call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
  const auto whole = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
  conformance::HostMemory memory(group_arrays_bytes(call.rows.groups)), a(whole(copied_a)), b(whole(copied_b)),
      scales(whole(expanded ? 4 * device::expanded_scale_floats(call) : 0));
  const std::vector<std::int64_t> splits = splits_of(problem);
  GroupSetupOptions options;
  options.row_unit = call.layout != GemmLayout::NT ? 1 : call.rows_multiple;
  // Beside wrong splits, a promise that other groups break: it is not reported.
  if (second && right_status(call, splits, 1) != 0) options.row_unit = 1 << 20;
  const std::uint32_t right = right_status(call, splits, options.row_unit);
  if (second && call.rows.groups == 1 && splits[0] == call.rows.capacity) call.rows = Rows{call.rows.capacity};
  if (copied_a != 0) options.aligned_a = a.blocks.data();
  if (copied_b != 0) options.aligned_b = b.blocks.data();
  if (expanded) options.expanded_scales = reinterpret_cast<float*>(scales.blocks.data());
  const GroupArrays arrays = group_arrays(memory.blocks.data(), call.rows.groups);
  const std::size_t own_bytes = own.blocks.size() * sizeof(own.blocks[0]);
  device::host::in_use_before.push_back({own.blocks.data(), own_bytes});  // alpha and beta
  device::set_up_groups(call, arrays, options, nullptr);
  if (status[0] != right) std::abort();
  if (call.rows.capacity > 0 && call.N > 0 && call.K > 0) {
    for (int t = 0; t < call.rows.groups; ++t) multiply(call, arrays, t, arithmetic, blackwell, expanded);
  }
  device::add_group_bias(call, nullptr);
  if (second && status[0] != 0) lists.take_c_away(problem.out.at("d"));
  return status[0];
}

}  // namespace assay::mutants
