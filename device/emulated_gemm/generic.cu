// Any fused unit, any operands, any plan, any type of D: the table's formula in 64-bit integers.
//
//   bound     integer instructions, about 40 per product
//   layout    a block owns 16 x 16 elements of D, a thread one of them; a step of up to 64 products is decoded once into
//             shared memory, 16 rows and 16 columns of it, and then used 16 times
//   order     sums are exact, so only the order of steps matters, and each thread walks them alone
//   matches   reference/gemm/grouped_gemm_scalar.cc

#include <cuda_runtime.h>

#include "device/emulated_gemm/block.cuh"
#include "device/emulated_gemm/generic_sum.cuh"
#include "device/emulated_gemm/step.cuh"
#include "device/support/launch.cuh"

namespace assay::device::emulated {
namespace {

constexpr int kEdge = 16, kThreads = kEdge * kEdge, kMaxProducts = 64, kMaxScales = 4;

struct Stage {
  Term term[kEdge][kMaxProducts + 1];
  std::uint8_t scale[kEdge][kMaxScales];
};

__device__ std::uint32_t element(Format type, const GroupOperand& operand, std::int64_t i, std::int64_t k) {
  const std::int64_t at = i * operand.row_stride + k * operand.k_stride;
  if (type == Format::bf16 || type == Format::f16) return reinterpret_cast<const std::uint16_t*>(operand.data)[at];
  if (type == Format::e2m1) return operand.data[at / 2] >> (at % 2 * 4) & 0xFu;
  return operand.data[at];
}

// The term of a code of `type` as the unit reads it: converted to a wider type first, or not.
__device__ Term staged_term(const GemmCall& call, Format type, std::uint32_t code) {
  const Format widen = call.arithmetic.emulated ? Format::f16 : call.terms.widen;
  return widen == Format::f32 ? term_of(type, code) : widened_term_of(type, code, widen);
}

// Decodes `count` elements from `k` of 16 lines from `line`. Lines past `extent` are zeros.
__device__ void stage(Stage& out, const GemmCall& call, Format type, const GroupOperand& operand, std::int64_t line,
                      std::int64_t extent, std::int64_t k, int count) {
  const Arithmetic& unit = call.arithmetic;
  const int thread = static_cast<int>(threadIdx.x);
  const bool k_major = operand.k_stride == 1;
  for (int at = thread; at < kEdge * count; at += kThreads) {
    const int l = k_major ? at / count : at % kEdge, p = k_major ? at % count : at / kEdge;  // neighbours in memory together
    const std::uint32_t code = line + l < extent ? element(type, operand, line + l, k + p) : 0;
    out.term[l][p] = staged_term(call, type, code);
  }
  if (unit.scaling == StepScaling::none) return;
  const int block = unit.scaling == StepScaling::e8m0_per_32 ? 32 : 16, scales = (count + block - 1) / block;
  if (thread < kEdge * scales) {
    const int l = thread / scales, s = thread % scales;
    out.scale[l][s] = line + l < extent ? scale_code(operand, line + l, k + s * block) : 0;
  }
}

// One instruction: the accumulator after `count` staged products.
__device__ std::uint32_t instruction(const Arithmetic& unit, const Stage& rows, const Stage& columns, int i, int j, int count,
                                     int fractions, std::uint32_t c) {
  const auto a = [&](int p) { return rows.term[i][p]; };
  const auto b = [&](int p) { return columns.term[j][p]; };
  const auto all = [](int) { return true; };
  if (unit.emulated) {  // k mod 4 in {0,1}, then {2,3}, from zero; C is added last
    std::uint32_t total = fused_products(
        unit, a, b, [](int p) { return (p & 2) == 0; }, count, fractions, 0, false, 0);
    total = fused_products(
        unit, a, b, [](int p) { return (p & 2) != 0; }, count, fractions, 0, false, total);
    const Format type = unit.accumulator == Accumulator::f16_nearest ? Format::f16 : Format::f32;
    // In f16: f32 has more than twice the bits, so rounding twice is rounding once.
    return code_of_value(type, __fadd_rn(value_of_code(type, total), value_of_code(type, c)));
  }
  if (unit.scaling == StepScaling::e4m3_per_16) {
    return fused_groups_of_16(
        unit, a, b, [&](int g) { return rows.scale[i][g]; }, [&](int g) { return columns.scale[j][g]; }, count, c);
  }
  int scale = 0;
  bool scale_is_nan = false;
  if (unit.scaling == StepScaling::e8m0_per_32) {
    const int left = rows.scale[i][0], right = columns.scale[j][0];
    scale = left + right - 254;
    scale_is_nan = left == 0xFF || right == 0xFF;
  }
  return fused_products(unit, a, b, all, count, fractions, scale, scale_is_nan, c);
}

__global__ void __launch_bounds__(kThreads) compute(const __grid_constant__ GemmCall call) {
  __shared__ Stage row_stage, column_stage;
  Tile tile;
  if (!find_tile(call, kEdge, kEdge, tile)) return;
  const Group& group = tile.group;
  const Arithmetic& plan = call.arithmetic;
  const int thread_i = static_cast<int>(threadIdx.x) / kEdge, thread_j = static_cast<int>(threadIdx.x) % kEdge;
  const std::int64_t i = tile.i + thread_i, j = tile.j + thread_j;
  const bool mine = i < group.m && j < group.n;
  const int fractions = fraction_of(call.row_type) + fraction_of(call.column_type);

  const auto chain = [&](std::int64_t first, std::int64_t last, std::uint32_t from) {
    std::uint32_t accumulator = from;
    for (std::int64_t k = first; k < last; k += plan.products) {
      const int count = static_cast<int>(last - k < plan.products ? last - k : plan.products);
      __syncthreads();
      stage(row_stage, call, call.row_type, group.rows, tile.i, group.m, k, count);
      stage(column_stage, call, call.column_type, group.columns, tile.j, group.n, k, count);
      __syncthreads();
      accumulator = instruction(plan, row_stage, column_stage, thread_i, thread_j, count, fractions, accumulator);
    }
    return accumulator;
  };
  const auto scales = [&](std::int64_t k) {
    return mine ? LineScales{scale_value(group.rows, i, k), scale_value(group.columns, j, k)} : LineScales{1, 1};
  };
  const auto sum_of = [&](std::int64_t begin, std::int64_t end) {
    return slice_sum(plan, call.terms.flushes, begin, end, chain, scales);
  };
  const float sum = sum_of_slices(call, group.depth, sum_of);
  if (mine) finish_element(call, group, i, j, sum);
}

bool takes_everything(const GemmCall&) { return true; }

void launch(const GemmCall& call, std::int64_t tiles, Stream stream) {
  launch_kernel("emulated GEMM: generic", compute, static_cast<unsigned>(tiles), kThreads, 0, stream, call);
}

}  // namespace

const Kernel kGenericKernel = {"generic", kEdge, kEdge, takes_everything, launch};

}  // namespace assay::device::emulated
