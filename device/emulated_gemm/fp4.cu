// Block-scaled FP4 (kind::mxf4nvf4): 64 products per step, sixteen at a time summed exactly and scaled by a pair of
// e4m3.
//
// The exact sum of sixteen is one bf16 matrix instruction: products are multiples of 1/4 below 2^6, so its f32 result
// is exact on every architecture. A second one, over magnitudes, shows whether all sixteen products are zero. The
// five terms of a step (four groups and C) are then added in 64-bit integers.
//
//   bound     integer instructions: about 250 per step, 4 per product
//   layout    8 warps of 32 x 32 elements; a thread's are those of its matrix-instruction fragments, kept in shared
//             memory. 64 k at a time are decoded into shared memory; the next 64 are loaded into registers meanwhile
//   matches   reference/gemm/grouped_gemm_scalar.cc

#include <cuda_runtime.h>

#include "device/emulated_gemm/block.cuh"
#include "device/emulated_gemm/mma.cuh"
#include "device/emulated_gemm/output.cuh"
#include "device/emulated_gemm/step.cuh"
#include "device/emulated_gemm/walk.cuh"
#include "device/support/launch.cuh"
#include "device/support/vectors.h"

namespace assay::device::emulated {
namespace {

constexpr const char* kName = "emulated GEMM: fp4";
constexpr int kTileRows = 128, kTileColumns = 64, kThreads = 256;
constexpr int kStep = 64, kGroup = 16, kGroups = kStep / kGroup;
constexpr int kPitch = kStep / 2 + 4;  // words: fragments of 8 lines meet no bank twice
constexpr int kElements = 32;          // of a thread
constexpr int kUnits = 3;              // groups of 16 that a thread loads a step: 2 of rows, 1 of columns

struct Stage {
  alignas(16) std::uint32_t values[kTileRows + kTileColumns][kPitch];  // bf16 pairs; rows first, then columns
  Term scales[kTileRows + kTileColumns][kGroups];
  float chain[kElements][kThreads];
};
ASSAY_HOLDS_VECTORS(uint4, Stage, values);
static_assert(kPitch % 4 == 0);  // each row of them too

// Sixteen codes and their scale.
struct Codes {
  std::uint32_t low, high;
  std::uint8_t scale;
};

__device__ Codes load(const GroupOperand& operand, std::int64_t first_line, std::int64_t extent, int unit, int k, int k_end) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t line = first_line + unit * 64 + thread / kGroups;
  const int at = k + thread % kGroups * kGroup;
  Codes codes = {0, 0, 0};
  if (line >= extent || at >= k_end) return codes;
  codes.scale = scale_code(operand, line, at);
  const int bytes = (k_end - at + 1) / 2;  // rows hold whole bytes
  const std::uint8_t* from = operand.data + (line * operand.row_stride + at) / 2;
  if (bytes >= 8 && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
    codes.low = words.x;
    codes.high = words.y;
  } else {
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      if (b >= bytes) break;
      const std::uint32_t byte = __ldg(from + b);
      if (b < 4)
        codes.low |= byte << (8 * b);
      else
        codes.high |= byte << (8 * b - 32);
    }
  }
  return codes;
}

// e2m1 as bf16: 0, 1/2, 1, 3/2, 2, 3, 4, 6.
__device__ std::uint32_t bf16_of(std::uint32_t code) {
  const std::uint32_t magnitude = code & 7;
  const std::uint32_t bits = magnitude >= 2 ? 0x3F00 + magnitude * 0x40 : magnitude * 0x3F00;
  return bits | (code & 8) << 12;
}

__device__ void decode(Stage& stage, const Codes& codes, int unit, int first_line) {
  const int thread = static_cast<int>(threadIdx.x), group = thread % kGroups;
  const int line = first_line + unit * 64 + thread / kGroups;
  std::uint32_t* out = stage.values[line] + group * (kGroup / 2);
#pragma unroll
  for (int w = 0; w < 2; ++w) {
    const std::uint32_t word = w == 0 ? codes.low : codes.high;
    std::uint32_t pair[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) pair[p] = bf16_of(word >> (8 * p) & 15) | bf16_of(word >> (8 * p + 4) & 15) << 16;
    *reinterpret_cast<uint4*>(out + 4 * w) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
  }
  stage.scales[line][group] = term_of(Format::e4m3, codes.scale & 0x7Fu);  // unsigned
}

// The accumulator after one step, from the exact sums of the groups.
__device__ float fused_groups(const Arithmetic& unit, const float (&sums)[kGroups], const bool (&all_zero)[kGroups],
                              const Term* row_scales, const Term* column_scales, float chain) {
  Sum sum;
  sum.begin(unit.zero_floor);
  const AccumulatorTerm c = AccumulatorTerm::of(bits_of_float(chain), Accumulator::f32_truncated);
  see_accumulator(sum, c);
  std::int32_t significand[kGroups];
  int exponent[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const Term left = row_scales[g], right = column_scales[g];
    const int scales = left.significand() * right.significand();
    if (left.special() || right.special()) sum.nan = true;
    exponent[g] = left.exponent() + right.exponent();
    significand[g] = static_cast<int>(sums[g] * 4.0f) * scales;
    if (!all_zero[g] && scales != 0) sum.see(exponent[g]);
  }
  sum.set_unit(unit.fraction_bits);
  add_accumulator(sum, c);
#pragma unroll
  // Quarters, and 3 fraction bits of each scale.
  for (int g = 0; g < kGroups; ++g) sum.add(significand[g], exponent[g] - 8);
  return float_of(sum.result(Accumulator::f32_truncated));
}

__global__ void __launch_bounds__(kThreads) compute(const __grid_constant__ GemmCall call) {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  __shared__ Tile own;
  Stage& stage = *reinterpret_cast<Stage*>(dynamic_shared);
  const int thread = static_cast<int>(threadIdx.x);
  if (!find_shared_tile(call, kTileRows, kTileColumns, own)) return;
  const Group& group = own.group;
  const std::int64_t tile_i = own.i, tile_j = own.j;
  const Arithmetic& plan = call.arithmetic;
  const int warp = thread / 32, g = thread % 32 / 4, q = thread % 4;
  const int warp_row = warp % 4 * 32, warp_column = warp / 4 * 32;
  const int depth = static_cast<int>(group.depth);

  // Element e = block * 4 + i: of the fragment of 16 rows and 8 columns number `block`, two by four of them.
  const auto row_of = [&](int e) { return warp_row + e / 16 * 16 + (e & 2) * 4 + g; };
  const auto column_of = [&](int e) { return warp_column + e / 4 % 4 * 8 + 2 * q + e % 2; };

  RunningSums<kThreads> running;
  running.begin(plan, reinterpret_cast<float*>(dynamic_shared + sizeof(Stage)), kElements);
  for (int e = 0; e < kElements; ++e) stage.chain[e][thread] = 0;

  Walk<kStep> walk;
  walk.begin(plan, depth);
  Codes codes[kUnits];
  const auto load_stage = [&]() {
    codes[0] = load(group.rows, tile_i, group.m, 0, walk.k, walk.interval_end);
    codes[1] = load(group.rows, tile_i, group.m, 1, walk.k, walk.interval_end);
    codes[2] = load(group.columns, tile_j, group.n, 0, walk.k, walk.interval_end);
  };
  if (walk.any) load_stage();

  while (walk.any) {
    const Walk<kStep> now = walk;
    __syncthreads();
    decode(stage, codes[0], 0, 0);
    decode(stage, codes[1], 1, 0);
    decode(stage, codes[2], 0, kTileRows);
    __syncthreads();
    walk.advance(plan, depth);
    if (walk.any) load_stage();

#pragma unroll 1
    for (int block = 0; block < kElements / 4; ++block) {
      const int first_row = warp_row + block / 4 * 16, first_column = kTileRows + warp_column + block % 4 * 8;
      float sums[4][kGroups];
      bool all_zero[4][kGroups];
#pragma unroll
      for (int p = 0; p < kGroups; ++p) {
        const std::uint32_t* upper = stage.values[first_row + g] + p * 8 + q;
        const std::uint32_t* lower = stage.values[first_row + 8 + g] + p * 8 + q;
        const std::uint32_t* right = stage.values[first_column + g] + p * 8 + q;
        constexpr std::uint32_t kMagnitudes = 0x7FFF7FFF;
        const std::uint32_t a[4] = {upper[0], lower[0], upper[4], lower[4]}, b[2] = {right[0], right[4]};
        const std::uint32_t a_size[4] = {a[0] & kMagnitudes, a[1] & kMagnitudes, a[2] & kMagnitudes, a[3] & kMagnitudes};
        const std::uint32_t b_size[2] = {b[0] & kMagnitudes, b[1] & kMagnitudes};
        float value[4] = {0, 0, 0, 0}, size[4] = {0, 0, 0, 0};
        multiply_k16(value, a, b);
        multiply_k16(size, a_size, b_size);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[i][p] = value[i];
          all_zero[i][p] = size[i] == 0;
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int e = 4 * block + i;
        float& chain = stage.chain[e][thread];
        chain = fused_groups(plan, sums[i], all_zero[i], stage.scales[row_of(e)], stage.scales[kTileRows + column_of(e)], chain);
      }
    }

    if (!now.ends_interval() || !running.any()) continue;
#pragma unroll 1
    for (int e = 0; e < kElements; ++e) {
      const std::int64_t i = tile_i + row_of(e), j = tile_j + column_of(e);
      if (i < group.m && j < group.n) {
        running.end_interval(call, group, e, i, j, now.interval_begin, now.ends_slice(), stage.chain[e][thread]);
      }
      stage.chain[e][thread] = 0;
    }
    if (now.ends_slice()) ++running.slices;
  }

#pragma unroll 1
  for (int e = 0; e < kElements; ++e) {
    const std::int64_t i = tile_i + row_of(e), j = tile_j + column_of(e);
    if (i < group.m && j < group.n) {
      write_element(group, call.d_type, i, j, running.result(call, e, stage.chain[e][thread]));
    }
  }
}

int block_bytes(const Arithmetic& plan) {
  return static_cast<int>(sizeof(Stage)) + RunningSums<kThreads>::bytes(plan, kElements);
}

bool takes(const GemmCall& call) {
  const Arithmetic& unit = call.arithmetic;
  return call.row_type == Format::e2m1 && call.column_type == Format::e2m1 && unit.scaling == StepScaling::e4m3_per_16 &&
         unit.products == kStep && unit.accumulator == Accumulator::f32_truncated && !unit.emulated &&
         fits_block(block_bytes(unit));
}

void launch(const GemmCall& call, std::int64_t tiles, Stream stream) {
  const int bytes = block_bytes(call.arithmetic);
  allow_dynamic_shared(compute, kName);
  launch_kernel(kName, compute, static_cast<unsigned>(tiles), kThreads, bytes, stream, call);
}

}  // namespace

const Kernel kFp4Kernel = {"fp4", kTileRows, kTileColumns, takes, launch};

}  // namespace assay::device::emulated
