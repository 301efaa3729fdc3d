#pragma once
// The fast kernels: 128 x 64 elements of D a block, f32 arithmetic without an unintended rounding. For one step
// of L products a_k * b_k and the accumulator C of an element, on a grid of 2^(e_max - F):
//
//   e_max     on tensor cores (tile_exponents.cuh)
//   product   q = a * b                    exact
//   cut       t = RZ(q * s)                s = 2^(F - 149 - e_max): a unit of the grid becomes the smallest subnormal,
//                                          so the multiplication truncates toward zero, on the magnitude, by itself
//   sum       F = 13: acc += t             exact: below 2^24 units
//             F <= 25: hi' = RN(hi + t) on a grid of 2^11 units (hi holds 1.5 * 2^34 units besides),
//                      lo += t - (hi' - hi)
//   round     RZ(hi + lo), or acc, back to its place by a power of two; e8m13 drops the lowest 10 bits
//
// so 3 instructions a product (F = 13) or 6, all f32, and about half of one for the rest of the step.
//
// Elements are prescaled so that q and s stay normal (tile_formats.cuh says for which). A step that holds
// anything else, infinities and NaN included, is computed in integers from the operands in memory
// (tile_slow_step.cuh), and so are the steps after it while an accumulator lies outside what f32 steps can
// give. No accumulator leaves 2^-113 to 2^74 by f32 steps alone: products are below 2^48, and are cut to 0 once C
// passes 2^73.
//
//   layout    8 warps of 32 x 32, a thread 4 rows by 8 columns: those of its matrix-instruction fragments. 32 k at a
//             time are decoded into shared memory (tile_stage.cuh); the next 32 are loaded into registers
//             meanwhile.
//
//     columns     0 .. 31 | 32 .. 63     of D, by warp        of a warp's 32 x 32, thread 4 g + q holds
//     rows  0- 31 warp 0  | warp 4                            rows    g, g + 8, g + 16, g + 24
//     rows 32- 63 warp 1  | warp 5                            columns 2q, 2q + 1, then the same 8, 16 and 24 further
//     rows 64- 95 warp 2  | warp 6
//     rows 96-127 warp 3  | warp 7

#include <cuda_runtime.h>

#include <cstdint>

#include "device/emulated_gemm/block.cuh"
#include "device/emulated_gemm/output.cuh"
#include "device/emulated_gemm/tile_exponents.cuh"
#include "device/emulated_gemm/tile_formats.cuh"
#include "device/emulated_gemm/tile_slow_step.cuh"
#include "device/emulated_gemm/tile_stage.cuh"
#include "device/emulated_gemm/walk.cuh"
#include "device/support/launch.cuh"

namespace assay::device::emulated {

// The chain that a kernel computes.
template <Format kRowFormat, Format kColumnFormat, int kL, bool kWide, bool kMx>
struct Chain {
  static constexpr Format kRow = kRowFormat, kColumn = kColumnFormat;
  static constexpr int kProducts = kL;     // of a fused step
  static constexpr bool kWideSum = kWide;  // hi and lo
  static constexpr bool kScaled = kMx;     // a pair of e8m0 scales per step
  // Exponents of two e4m3 values add to -12 to 16: 32 products fit powers of 2^6. Otherwise -28 to 30, 8 at a time.
  static constexpr int kBase = kRow == Format::e4m3 && kColumn == Format::e4m3 ? 6 : 4;
  using Code = typename FastFormat<kRowFormat>::Code;
};

// The accumulators in memory, for loops that are not worth unrolling over them.
__device__ inline void put_aside(const float (&acc)[kRows][kColumns], float (&aside)[kRows * kColumns]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) aside[r * kColumns + c] = acc[r][c];
  }
}
__device__ inline void take_back(const float (&aside)[kRows * kColumns], float (&acc)[kRows][kColumns]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) acc[r][c] = aside[r * kColumns + c];
  }
}

// One body with a comment for each step: each cut changes the machine code of some kernel.
template <class C>
__global__ void __launch_bounds__(kTileThreads, C::kWideSum ? 1 : 2) compute_tile(const __grid_constant__ GemmCall call) {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  __shared__ Tile own;
  TileStage& stage = *reinterpret_cast<TileStage*>(dynamic_shared);
  const int thread = static_cast<int>(threadIdx.x);
  if (!find_shared_tile(call, kTileRows, kTileColumns, own)) return;
  const Group& group = own.group;
  const std::int64_t tile_i = own.i, tile_j = own.j;
  const Arithmetic& plan = call.arithmetic;
  const int warp = thread / 32, g = thread % 32 / 4, q = thread % 4;
  const int warp_row = warp % 4 * 32, warp_column = warp / 4 * 32;
  const int depth = static_cast<int>(group.depth);
  RunningSums<kTileThreads> running;
  running.begin(plan, reinterpret_cast<float*>(dynamic_shared + sizeof(TileStage)), kRows * kColumns);

  using Code = typename C::Code;
  const auto lines_of = [&](const GroupOperand& operand, std::int64_t first, std::int64_t extent, int size) {
    Lines<Code> lines;
    lines.data = reinterpret_cast<const Code*>(operand.data) + first * operand.row_stride;
    lines.row_stride = operand.row_stride;
    lines.k_stride = operand.k_stride;
    lines.lines = static_cast<int>(extent - first < size ? extent - first : size);
    lines.k_major = operand.k_stride == 1;
    return lines;
  };
  const Lines<Code> row_lines = lines_of(group.rows, tile_i, group.m, kTileRows);
  const Lines<Code> column_lines = lines_of(group.columns, tile_j, group.n, kTileColumns);

  // acc: the accumulator between steps; the sum, or its upper part, within one.
  float acc[kRows][kColumns], aside[kRows * kColumns];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) acc[r][c] = 0;
  }

  const int fraction_bits = plan.fraction_bits;
  const std::uint32_t kept_bits = plan.accumulator == Accumulator::e8m13_truncated ? 0xFFFFFC00u : 0xFFFFFFFFu;
  const auto row_of = [&](int r) { return warp_row + 8 * r + g; };
  const auto column_of = [&](int c) { return warp_column + c / 2 * 8 + 2 * q + c % 2; };

  Walk<kChunk> walk;
  walk.begin(plan, depth);
  Codes<Code> codes[kUnits];
  const auto load_stage = [&]() {
    codes[0] = row_lines.load(0, walk.k, walk.interval_end);
    codes[1] = row_lines.load(1, walk.k, walk.interval_end);
    codes[2] = column_lines.load(0, walk.k, walk.interval_end);
  };
  if (walk.any) load_stage();
  bool out_of_range = false;  // of an accumulator of this thread

  while (walk.any) {
    const Walk<kChunk> now = walk;
    __syncthreads();
    constexpr float kRowPlace = to_place<C::kRow>(true), kColumnPlace = to_place<C::kColumn>(false);
    bool special = any_special<C::kRow>(codes[0]);
    special |= any_special<C::kRow>(codes[1]);
    special |= any_special<C::kColumn>(codes[2]);
    decode<C::kRow, C::kBase, C::kProducts>(stage, codes[0], 0, 0, row_lines.k_major, kRowPlace);
    decode<C::kRow, C::kBase, C::kProducts>(stage, codes[1], 1, 0, row_lines.k_major, kRowPlace);
    decode<C::kColumn, C::kBase, C::kProducts>(stage, codes[2], 0, kTileRows, column_lines.k_major, kColumnPlace);

    int row_scale[C::kScaled ? kRows : 1] = {}, column_scale[C::kScaled ? kColumns : 1] = {};
    if constexpr (C::kScaled) {
      const auto read = [&](const GroupOperand& operand, std::int64_t line, std::int64_t extent) {
        const int code = line < extent ? scale_code(operand, line, now.k) : 127;
        special |= code < 127 - 30 || code > 127 + 8;
        return code - 127;
      };
#pragma unroll
      for (int r = 0; r < kRows; ++r) row_scale[r] = read(group.rows, tile_i + row_of(r), group.m);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) column_scale[c] = read(group.columns, tile_j + column_of(c), group.n);
    }
    const bool in_integers = __syncthreads_or(special) != 0;
    walk.advance(plan, depth);
    if (walk.any) load_stage();

#pragma unroll 1
    for (int step = 0; step < kChunk / C::kProducts; ++step) {
      const int k = now.k + step * C::kProducts;
      if (k >= now.interval_end) break;
      // The grid: e_max from the largest exponents of the products, and C.
      std::uint32_t scale[kRows][kColumns];  // f32 bits of s, times the block scales
      bool unknown = false;
      if (!in_integers) {
#pragma unroll
        for (int tile = 0; tile < kColumns / 2; ++tile) {
          float sums[kRows][2];
          power_sums<C::kBase, C::kProducts>(stage, step, warp_row, warp_column, tile, sums);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int c = 2 * tile + e;
              int level = level_of<C::kBase>(sums[r][e]);
              if constexpr (C::kRow == Format::bf16) {
                const int tops = stage.tops[step][row_of(r)] + stage.tops[step][kTileRows + column_of(c)];
                constexpr float kLowest = power_of_two(-124);  // B^-31: smaller sums do not determine the level
                unknown |= sums[r][e] < kLowest && tops > kNoTerm / 2;
                level = max(level + tops, -126);
              }
              int scales = 0;
              if constexpr (C::kScaled) {
                scales = row_scale[r] + column_scale[c];
                level = sums[r][e] == 0 ? -126 : level + scales;
              }
              // Without a product the level is below every bit of C; C comes back unchanged.
              const int top = max((level + 127) << 23, static_cast<int>(bits_of_float(acc[r][c]) & 0x7F800000u));
              const int s = ((kPrescale - 22 + 127 + fraction_bits) << 23) - top;
              scale[r][c] = static_cast<std::uint32_t>(s);
            }
          }
        }
      }
      if (in_integers || __any_sync(0xFFFFFFFFu, unknown || out_of_range)) {
        // A step in integers.
        out_of_range = false;
        const SlowLines lines = {&group.rows, &group.columns, C::kRow, C::kColumn};
        const int count = min(C::kProducts, now.interval_end - k);
        put_aside(acc, aside);
#pragma unroll 1
        for (int o = 0; o < kRows * kColumns; ++o) {
          const std::int64_t i = tile_i + row_of(o / kColumns), j = tile_j + column_of(o % kColumns);
          if (i < group.m && j < group.n) aside[o] = slow_step(plan, lines, i, j, k, count, aside[o]);
          out_of_range |= !in_range(aside[o]);
        }
        take_back(aside, acc);
        continue;
      }

      // C on the grid. It is cut twice; the second grid is the coarser, so the result is that of one cut.
      constexpr float kMagic = power_of_two(34 - 149) * 1.5f, kUnprescale = power_of_two(-kPrescale);
      float low[C::kWideSum ? kRows : 1][kColumns];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const float own = __fmul_rz(__fmul_rz(acc[r][c], float_of(scale[r][c])), kUnprescale);
          if constexpr (C::kWideSum) {
            const float high = __fadd_rn(kMagic, own);
            low[r][c] = __fsub_rn(own, __fsub_rn(high, kMagic));
            if constexpr (C::kScaled) {
              const int s = static_cast<int>(scale[r][c]) + ((row_scale[r] + column_scale[c]) << 23);
              if (s > 0)
                acc[r][c] = high;  // otherwise every product is cut to 0, and C does not change
              else
                low[r][c] = 0;
              scale[r][c] = static_cast<std::uint32_t>(max(s, 0));
            } else {
              acc[r][c] = high;
            }
          } else {
            acc[r][c] = own;
          }
        }
      }

      // The products, each cut to the grid.
      const float* a_values = &stage.values[warp_row + g][step * C::kProducts];
      const float* b_values = &stage.values[kTileRows + warp_column + 2 * q][step * C::kProducts];
#pragma unroll 1
      for (int part = 0; part < C::kProducts; part += 4) {
        float4 a[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) a[r] = *reinterpret_cast<const float4*>(a_values + 8 * r * kValuePitch + part);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const float4 b = *reinterpret_cast<const float4*>(b_values + (c / 2 * 8 + c % 2) * kValuePitch + part);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            const auto add = [&](float left, float right) {
              const float cut = __fmul_rz(__fmul_rn(left, right), float_of(scale[r][c]));
              const float sum = __fadd_rn(acc[r][c], cut);
              if constexpr (C::kWideSum) {
                low[r][c] = __fadd_rn(low[r][c], __fsub_rn(cut, __fsub_rn(sum, acc[r][c])));
              }
              acc[r][c] = sum;
            };
            add(a[r].x, b.x);
            add(a[r].y, b.y);
            add(a[r].z, b.z);
            add(a[r].w, b.w);
          }
        }
      }

      // The sums rounded and taken off the grid, by 2^100 and 2^(e_max - F + 49).
      constexpr float kUp = power_of_two(100);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          std::uint32_t s = scale[r][c];
          float sum = acc[r][c];
          if constexpr (C::kWideSum) sum = __fadd_rz(__fsub_rn(sum, kMagic), low[r][c]);
          if constexpr (C::kScaled) s -= static_cast<std::uint32_t>((row_scale[r] + column_scale[c]) << 23);
          const float back = float_of(((kPrescale + 154u) << 23) - s);
          const float value = __fmul_rn(__fmul_rn(sum, kUp), back);
          const float rounded = float_of(bits_of_float(value) & kept_bits);
          if constexpr (C::kScaled) {
            if (scale[r][c] != 0) acc[r][c] = rounded;
          } else {
            acc[r][c] = rounded;
          }
        }
      }
    }

    if (!now.ends_interval() || !running.any()) continue;  // one chain: acc is the result
    put_aside(acc, aside);
#pragma unroll 1
    for (int o = 0; o < kRows * kColumns; ++o) {
      const std::int64_t i = tile_i + row_of(o / kColumns), j = tile_j + column_of(o % kColumns);
      if (i < group.m && j < group.n) {
        running.end_interval(call, group, o, i, j, now.interval_begin, now.ends_slice(), aside[o]);
      }
    }
    if (now.ends_slice()) ++running.slices;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) acc[r][c] = 0;
    }
    out_of_range = false;
  }

  put_aside(acc, aside);
#pragma unroll 1
  for (int o = 0; o < kRows * kColumns; ++o) {
    const std::int64_t i = tile_i + row_of(o / kColumns), j = tile_j + column_of(o % kColumns);
    if (i < group.m && j < group.n) write_element(group, call.d_type, i, j, running.result(call, o, aside[o]));
  }
}

// Dynamic shared memory of a block.
inline int tile_bytes(const Arithmetic& plan) {
  return static_cast<int>(sizeof(TileStage)) + RunningSums<kTileThreads>::bytes(plan, kRows * kColumns);
}
inline bool tiles_fit(const Arithmetic& plan) { return fits_block(tile_bytes(plan)); }

template <class C>
void launch_tiles(const GemmCall& call, std::int64_t tiles, Stream stream, const char* name) {
  const int bytes = tile_bytes(call.arithmetic);
  allow_dynamic_shared(compute_tile<C>, name);
  launch_kernel(name, compute_tile<C>, static_cast<unsigned>(tiles), kTileThreads, bytes, stream, call);
}

}  // namespace assay::device::emulated
