#pragma once
// The fast kernels: 128 x 64 elements of D a block, f32 arithmetic without a rounding that is not meant. For one step of L
// products a_k * b_k and the accumulator C of an element, on a grid of 2^(e_max - F):
//
//   e_max     on tensor cores. Each operand has a second form, B^e for an element of exponent e (0 for a zero), B = 2^6 or
//             2^4. A sum of fewer than B such products, each B^(e_a + e_b), lies in [B^m, B^(m+1)) for the largest m of
//             e_a + e_b: its f32 exponent tells m, however the instruction rounds.
//   product   q = a * b                    exact
//   cut       t = RZ(q * s)                s = 2^(F - 149 - e_max): a unit of the grid becomes the smallest subnormal, so
//                                          the multiplication truncates toward zero, on the magnitude, by itself
//   sum       F = 13: acc += t             exact: below 2^24 units
//             F <= 25: hi' = RN(hi + t) on a grid of 2^11 units (hi holds 1.5 * 2^34 units besides), lo += t - (hi' - hi)
//   round     RZ(hi + lo), or acc, back to its place by a power of two; e8m13 drops the lowest 10 bits
//
// so 3 instructions a product (F = 13) or 6, all f32, and about half of one for the rest of the step.
//
// Elements are prescaled so that q and s stay normal: rows by 2^-37, columns by 2^-38. That holds for all finite FP8 and f16
// values and for bf16 within 2^-30 to 2^20, e8m0 scales within 2^-30 to 2^8. A step that holds anything else, infinities
// and NaN included, is computed in integers (bringup_step.cuh) from the operands in memory, and so are the steps after it
// while an accumulator lies outside what f32 steps can give.
// No accumulator leaves 2^-113 to 2^74 by f32 steps alone: products are below 2^48, and are cut to 0 once C passes 2^73.
//
//   layout    8 warps of 32 x 32, a thread 4 rows by 8 columns: those of its matrix-instruction fragments. 32 k at a time
//             are decoded into shared memory; the next 32 are loaded into registers meanwhile.

#include <cuda_runtime.h>

#include "device/gemm/bringup_output.cuh"
#include "device/gemm/bringup_step.cuh"
#include "device/gemm/bringup_walk.cuh"
#include "device/support/launch_check.h"

namespace assay::device::bringup {

constexpr int kTileRows = 128, kTileColumns = 64, kTileThreads = 256;
constexpr int kChunk = 32;                    // k of a stage
constexpr int kValuePitch = kChunk + 4;       // floats: 16-byte loads of 8 rows meet no bank twice
constexpr int kPowerPitch = kChunk / 2 + 4;   // words of two
constexpr int kRows = 4, kColumns = 8;        // of a thread
constexpr int kUnits = 3;                     // of 8 elements that a thread loads a stage: 2 of rows, 1 of columns
constexpr int kUnit = 8;
constexpr int kPrescaleRows = -37, kPrescaleColumns = -38;
constexpr int kPrescale = -(kPrescaleRows + kPrescaleColumns);  // 75
constexpr int kNoTerm = -20000;               // "exponent" where there is no product

ASSAY_HD constexpr float power_of_two(int exponent) {
  float value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

struct TileStage {
  float values[kTileRows + kTileColumns][kValuePitch];            // rows first, then columns
  std::uint32_t powers[kTileRows + kTileColumns][kPowerPitch];    // bf16 pairs
  std::int32_t tops[kChunk / 8][kTileRows + kTileColumns];        // bf16: exponent that B^0 stands for in each step
};

__device__ inline void multiply_k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_k8(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

// ---- Decoding -----------------------------------------------------------------------------------------------------

// A format whose magnitude, moved to the top of an f32, is the value times 2^(bias - 127), subnormals included.
template <Format kFormat>
struct FastFormat;
template <>
struct FastFormat<Format::e4m3> {
  using Code = std::uint8_t;
  static constexpr int kExponentBits = 4, kFraction = 3, kBias = 7;
  static constexpr std::uint32_t kToInfinity = 0x01010101;  // added to 4 magnitudes: bit 7 of those that are special
};
template <>
struct FastFormat<Format::e5m2> {
  using Code = std::uint8_t;
  static constexpr int kExponentBits = 5, kFraction = 2, kBias = 15;
  static constexpr std::uint32_t kToInfinity = 0x04040404;
};
template <>
struct FastFormat<Format::f16> {
  using Code = std::uint16_t;
  static constexpr int kExponentBits = 5, kFraction = 10, kBias = 15;
  static constexpr std::uint32_t kToInfinity = 0x04000400;
};
template <>
struct FastFormat<Format::bf16> {
  using Code = std::uint16_t;
  static constexpr int kExponentBits = 8, kFraction = 7, kBias = 127;
  static constexpr int kLowest = -30, kHighest = 20;
};

// Eight codes as loaded.
template <class Code>
struct Codes {
  static constexpr int kWords = kUnit * static_cast<int>(sizeof(Code)) / 4;
  std::uint32_t word[kWords];
  __device__ std::uint32_t code(int e) const {
    constexpr int kEach = 4 / static_cast<int>(sizeof(Code)), kBits = 8 * static_cast<int>(sizeof(Code));
    return word[e / kEach] >> (e % kEach * kBits) & ((1u << kBits) - 1);
  }
};

// Whether a code is not for the f32 path.
template <Format kFormat>
__device__ bool any_special(const Codes<typename FastFormat<kFormat>::Code>& codes) {
  using F = FastFormat<kFormat>;
  std::uint32_t found = 0;
  if constexpr (kFormat == Format::bf16) {
#pragma unroll
    for (int e = 0; e < kUnit; ++e) {
      const std::uint32_t magnitude = codes.code(e) & 0x7FFF, field = magnitude >> 7;
      found |= magnitude != 0 && field - static_cast<std::uint32_t>(127 + F::kLowest) > static_cast<std::uint32_t>(F::kHighest - F::kLowest);
    }
  } else {
    constexpr std::uint32_t kSigns = sizeof(typename F::Code) == 1 ? 0x80808080u : 0x80008000u;
#pragma unroll
    for (const std::uint32_t word : codes.word) found |= ((word & ~kSigns) + F::kToInfinity) & kSigns;
  }
  return found != 0;
}

template <Format kFormat>
__device__ float prescaled_value(std::uint32_t code, float to_place) {
  using F = FastFormat<kFormat>;
  constexpr int kSignBit = F::kExponentBits + F::kFraction;
  const std::uint32_t magnitude = code & ((1u << kSignBit) - 1);
  return __fmul_rn(float_of((code >> kSignBit) << 31 | magnitude << (23 - F::kFraction)), to_place);
}

// The factor that makes a decoded magnitude the value times 2^prescale.
template <Format kFormat>
ASSAY_HD constexpr float to_place(bool row_side) {
  return power_of_two(127 - FastFormat<kFormat>::kBias + (row_side ? kPrescaleRows : kPrescaleColumns));
}

// Exponent of an element that is not zero; subnormals have that of the smallest normal.
template <Format kFormat>
__device__ int exponent_of(std::uint32_t code) {
  using F = FastFormat<kFormat>;
  const int field = static_cast<int>(code >> F::kFraction & ((1u << F::kExponentBits) - 1));
  return max(field, 1) - F::kBias;
}

// B^(e - top) as bf16, B = 2^kBase; 0 for a zero, and for bf16 elements that are more than 31 below the top.
template <Format kFormat, int kBase>
__device__ std::uint32_t power_of(std::uint32_t code, int top) {
  constexpr int kSignBit = FastFormat<kFormat>::kExponentBits + FastFormat<kFormat>::kFraction;
  const int field = 127 + kBase * (exponent_of<kFormat>(code) - top);
  const bool zero = (code & ((1u << kSignBit) - 1)) == 0 || (kFormat == Format::bf16 && field <= 0);
  return zero ? 0u : static_cast<std::uint32_t>(field) << 7;
}

// ---- Loading ------------------------------------------------------------------------------------------------------

// One operand's part of a block: where its elements are.
template <class Code>
struct Lines {
  const Code* data;           // of the tile's first line
  std::int64_t row_stride, k_stride;
  int lines;                  // that exist, at most those of the tile
  bool k_major;

  // Unit `unit` of 0, 1, ... (each thread one of 256): 8 elements along k of one line, or of one k in 8 lines.
  __device__ Codes<Code> load(int unit, int k, int k_end) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int line = k_major ? unit * 64 + thread / 4 : unit * 64 + thread / 32 * 8;
    const int at = k + (k_major ? thread % 4 * 8 : thread % 32);
    const int present = k_major ? (line < lines ? k_end - at : 0) : (at < k_end ? lines - line : 0);
    const Code* from = data + line * row_stride + at * k_stride;
    Codes<Code> codes;
    if (present >= kUnit && reinterpret_cast<std::uintptr_t>(from) % sizeof codes == 0) {
      if constexpr (sizeof(Code) == 1) {
        const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
        codes.word[0] = words.x, codes.word[1] = words.y;
      } else {
        const uint4 words = __ldg(reinterpret_cast<const uint4*>(from));
        codes.word[0] = words.x, codes.word[1] = words.y, codes.word[2] = words.z, codes.word[3] = words.w;
      }
      return codes;
    }
    constexpr int kEach = 4 / static_cast<int>(sizeof(Code)), kBits = 8 * static_cast<int>(sizeof(Code));
#pragma unroll
    for (std::uint32_t& word : codes.word) word = 0;
#pragma unroll
    for (int e = 0; e < kUnit; ++e) {  // the stride of a unit's elements is 1 either way
      if (e < present) codes.word[e / kEach] |= static_cast<std::uint32_t>(__ldg(from + e)) << (e % kEach * kBits);
    }
    return codes;
  }
};

// Decodes a unit into the stage. `first_line`: 0 for rows, kTileRows for columns.
template <Format kFormat, int kBase, int kProducts>
__device__ void decode(TileStage& stage, const Codes<typename FastFormat<kFormat>::Code>& codes, int unit, int first_line,
                       bool k_major, float place) {
  const int thread = static_cast<int>(threadIdx.x);
  if (k_major) {
    const int line = first_line + unit * 64 + thread / 4, part = thread % 4;
    int top = 0;
    if constexpr (kFormat == Format::bf16) {
      top = kNoTerm;
#pragma unroll
      for (int e = 0; e < kUnit; ++e) {
        if ((codes.code(e) & 0x7FFF) != 0) top = max(top, exponent_of<kFormat>(codes.code(e)));
      }
#pragma unroll
      for (int step = 8; step < kProducts; step *= 2) top = max(top, __shfl_xor_sync(0xFFFFFFFFu, top, step / 8));
      if (part % (kProducts / 8) == 0) stage.tops[part * 8 / kProducts][line] = top;
    }
    float* values = &stage.values[line][part * kUnit];
    std::uint32_t* powers = &stage.powers[line][part * kUnit / 2];
    std::uint32_t word[kUnit / 2];
#pragma unroll
    for (int e = 0; e < kUnit; e += 4) {
      *reinterpret_cast<float4*>(values + e) =
          make_float4(prescaled_value<kFormat>(codes.code(e), place), prescaled_value<kFormat>(codes.code(e + 1), place),
                      prescaled_value<kFormat>(codes.code(e + 2), place), prescaled_value<kFormat>(codes.code(e + 3), place));
    }
#pragma unroll
    for (int e = 0; e < kUnit; e += 2) {
      word[e / 2] = power_of<kFormat, kBase>(codes.code(e), top) | power_of<kFormat, kBase>(codes.code(e + 1), top) << 16;
    }
    *reinterpret_cast<uint4*>(powers) = make_uint4(word[0], word[1], word[2], word[3]);
    return;
  }
  const int line = first_line + unit * 64 + thread / 32 * 8, k = thread % 32;
#pragma unroll
  for (int e = 0; e < kUnit; ++e) {
    const std::uint32_t code = codes.code(e);
    int top = 0;
    if constexpr (kFormat == Format::bf16) {
      top = (code & 0x7FFF) != 0 ? exponent_of<kFormat>(code) : kNoTerm;
#pragma unroll
      for (int step = 1; step < kProducts; step *= 2) top = max(top, __shfl_xor_sync(0xFFFFFFFFu, top, step));
      if (k % kProducts == 0) stage.tops[k / kProducts][line + e] = top;
    }
    stage.values[line + e][k] = prescaled_value<kFormat>(code, place);
    reinterpret_cast<std::uint16_t*>(stage.powers[line + e])[k] = static_cast<std::uint16_t>(power_of<kFormat, kBase>(code, top));
  }
}

// ---- A step -------------------------------------------------------------------------------------------------------

// Which chain is computed.
template <Format kRowFormat, Format kColumnFormat, int kL, bool kWide, bool kMx>
struct Chain {
  static constexpr Format kRow = kRowFormat, kColumn = kColumnFormat;
  static constexpr int kProducts = kL;        // of a fused step
  static constexpr bool kWideSum = kWide;     // hi and lo
  static constexpr bool kScaled = kMx;        // a pair of e8m0 scales a step
  // Exponents of two e4m3 values add to -12 to 16: 32 products fit powers of 2^6. Otherwise -28 to 30, 8 at a time.
  static constexpr int kBase = kRow == Format::e4m3 && kColumn == Format::e4m3 ? 6 : 4;
  using Code = typename FastFormat<kRowFormat>::Code;
};

// floor(log_B) of a sum of powers of B that is not zero.
template <int kBase>
__device__ int level_of(float sum) {
  const int exponent = static_cast<int>(bits_of_float(sum) >> 23) - 127;
  if constexpr (kBase == 4) return exponent >> 2;
  return ((exponent + 72) * 171 >> 10) - 12;  // (n * 171) >> 10 is n / 6 for n in [0, 255]
}

// Largest e_a + e_b of step `step` for the thread's 4 rows and columns 2 * pair, 2 * pair + 1, as sums of powers.
template <class C>
__device__ void power_sums(const TileStage& stage, int step, int warp_row, int warp_column, int tile, float (&sums)[kRows][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  const std::uint32_t* columns = stage.powers[kTileRows + warp_column + 8 * tile + g];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t* upper = stage.powers[warp_row + 16 * half + g];
    const std::uint32_t* lower = stage.powers[warp_row + 16 * half + 8 + g];
    float d[4] = {0, 0, 0, 0};
    if constexpr (C::kBase == 6) {
      // Which k an instruction's slots hold does not matter while both operands agree.
#pragma unroll
      for (int part = 0; part < C::kProducts / 16; ++part) {
        const int at = step * (C::kProducts / 2) + part * 8 + 2 * q;
        const uint2 top = *reinterpret_cast<const uint2*>(upper + at), bottom = *reinterpret_cast<const uint2*>(lower + at);
        const uint2 right = *reinterpret_cast<const uint2*>(columns + at);
        const std::uint32_t a[4] = {top.x, bottom.x, top.y, bottom.y}, b[2] = {right.x, right.y};
        multiply_k16(d, a, b);
      }
    } else {
#pragma unroll
      for (int part = 0; part < C::kProducts / 8; ++part) {
        const int at = step * (C::kProducts / 2) + part * 4 + q;
        const std::uint32_t a[2] = {upper[at], lower[at]}, b[1] = {columns[at]};
        float own[4] = {0, 0, 0, 0};
        multiply_k8(own, a, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) d[i] = fmaxf(d[i], own[i]);
      }
    }
    sums[2 * half][0] = d[0];
    sums[2 * half][1] = d[1];
    sums[2 * half + 1][0] = d[2];
    sums[2 * half + 1][1] = d[3];
  }
}

// The step of one element in integers, from memory: count products from k of line i and line j.
struct SlowLines {
  const GroupOperand* rows;
  const GroupOperand* columns;
  Format row_type, column_type;
};
__device__ __noinline__ inline float slow_step(const Arithmetic& unit, const SlowLines& lines, std::int64_t i, std::int64_t j, std::int64_t k,
                                        int count, float c) {
  const auto read = [](Format type, const GroupOperand& operand, std::int64_t line, std::int64_t at) -> Term {
    const std::int64_t index = line * operand.row_stride + at * operand.k_stride;
    const bool half = type == Format::bf16 || type == Format::f16;
    return term_of(type, half ? reinterpret_cast<const std::uint16_t*>(operand.data)[index] : operand.data[index]);
  };
  int scale = 0;
  bool scale_is_nan = false;
  if (unit.scaling == StepScaling::e8m0_per_32) {
    const int left = scale_code(*lines.rows, i, k), right = scale_code(*lines.columns, j, k);
    scale = left + right - 254;
    scale_is_nan = left == 0xFF || right == 0xFF;
  }
  const int fractions = fraction_of(lines.row_type) + fraction_of(lines.column_type);
  return float_of(fused_products(
      unit, [&](int p) { return read(lines.row_type, *lines.rows, i, k + p); },
      [&](int p) { return read(lines.column_type, *lines.columns, j, k + p); }, [](int) { return true; }, count, fractions, scale,
      scale_is_nan, bits_of_float(c)));
}

// Whether an accumulator can have come from f32 steps alone, or may enter one: 0 or within 2^-110 to 2^70.
__device__ inline bool in_range(float c) {
  const std::uint32_t magnitude = bits_of_float(c) & 0x7FFFFFFF;
  return magnitude == 0 || (magnitude >= (127u - 110) << 23 && magnitude < (127u + 70) << 23);
}

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

template <class C>
__global__ void __launch_bounds__(kTileThreads, C::kWideSum ? 1 : 2) compute_tile(const __grid_constant__ GemmCall call) {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  __shared__ Group group_copy;
  __shared__ std::int64_t tile_at[2];
  TileStage& stage = *reinterpret_cast<TileStage*>(dynamic_shared);

  const int thread = static_cast<int>(threadIdx.x);
  {
    Tile tile;
    if (!find_tile(call, kTileRows, kTileColumns, tile)) return;
    if (thread == 0) {
      group_copy = tile.group;
      tile_at[0] = tile.i;
      tile_at[1] = tile.j;
    }
  }
  __syncthreads();
  const Group& group = group_copy;
  const std::int64_t tile_i = tile_at[0], tile_j = tile_at[1];
  const Arithmetic& plan = call.arithmetic;
  const int warp = thread / 32, g = thread % 32 / 4, q = thread % 4;
  const int warp_row = warp % 4 * 32, warp_column = warp / 4 * 32;
  const int depth = static_cast<int>(group.depth);
  Kept<kTileThreads> kept;
  kept.begin(plan, reinterpret_cast<float*>(dynamic_shared + sizeof(TileStage)), kRows * kColumns);

  using Code = typename C::Code;
  const auto lines_of = [&](const GroupOperand& operand, std::int64_t first, std::int64_t extent, int most) {
    Lines<Code> lines;
    lines.data = reinterpret_cast<const Code*>(operand.data) + first * operand.row_stride;
    lines.row_stride = operand.row_stride;
    lines.k_stride = operand.k_stride;
    lines.lines = static_cast<int>(extent - first < most ? extent - first : most);
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
    codes[0] = row_lines.load(0, walk.k, walk.stretch_end);
    codes[1] = row_lines.load(1, walk.k, walk.stretch_end);
    codes[2] = column_lines.load(0, walk.k, walk.stretch_end);
  };
  if (walk.any) load_stage();
  bool out_of_range = false;  // some accumulator of this thread is

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
      if (k >= now.stretch_end) break;
      std::uint32_t scale[kRows][kColumns];  // f32 bits of s, times the block scales
      bool unknown = false;
      if (!in_integers) {
#pragma unroll
        for (int tile = 0; tile < kColumns / 2; ++tile) {
          float sums[kRows][2];
          power_sums<C>(stage, step, warp_row, warp_column, tile, sums);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const int c = 2 * tile + e;
              int level = level_of<C::kBase>(sums[r][e]);
              if constexpr (C::kRow == Format::bf16) {
                const int tops = stage.tops[step][row_of(r)] + stage.tops[step][kTileRows + column_of(c)];
                constexpr float kLowest = power_of_two(-124);  // B^-31; what lies below is not told apart
                unknown |= sums[r][e] < kLowest && tops > kNoTerm / 2;
                level = max(level + tops, -126);
              }
              int scales = 0;
              if constexpr (C::kScaled) {
                scales = row_scale[r] + column_scale[c];
                level = sums[r][e] == 0 ? -126 : level + scales;
              }
              // Without a product the level is below all that C can be a multiple of; C comes back unchanged.
              const int top = max((level + 127) << 23, static_cast<int>(bits_of_float(acc[r][c]) & 0x7F800000u));
              const int s = ((kPrescale - 22 + 127 + fraction_bits) << 23) - top;
              scale[r][c] = static_cast<std::uint32_t>(s);
            }
          }
        }
      }
      if (in_integers || __any_sync(0xFFFFFFFFu, unknown || out_of_range)) {
        out_of_range = false;
        const SlowLines lines = {&group.rows, &group.columns, C::kRow, C::kColumn};
        const int count = min(C::kProducts, now.stretch_end - k);
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

      // C on the grid. Cut twice, on grids of which the second is the coarser: that is cut once.
      constexpr float kMagic = power_of_two(34 - 149) * 1.5f, kUnprescale = power_of_two(-kPrescale), kUp = power_of_two(100);
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
              if (s > 0) acc[r][c] = high;  // otherwise every product is cut to 0, and C stays what it is
              else low[r][c] = 0;
              scale[r][c] = static_cast<std::uint32_t>(max(s, 0));
            } else {
              acc[r][c] = high;
            }
          } else {
            acc[r][c] = own;
          }
        }
      }

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

      // Back to its place, by 2^100 and 2^(e_max - F + 49).
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

    if (!now.ends_stretch() || !kept.any()) continue;  // one chain: acc is the result
    put_aside(acc, aside);
#pragma unroll 1
    for (int o = 0; o < kRows * kColumns; ++o) {
      const std::int64_t i = tile_i + row_of(o / kColumns), j = tile_j + column_of(o % kColumns);
      if (i < group.m && j < group.n) kept.end_stretch(call, group, o, i, j, now.stretch_begin, now.ends_slice(), aside[o]);
    }
    if (now.ends_slice()) ++kept.slices;
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
    if (i < group.m && j < group.n) write_element(group, call.d_type, i, j, kept.result(call, o, aside[o]));
  }
}

// Dynamic shared memory of a block.
inline int tile_bytes(const Arithmetic& plan) {
  return static_cast<int>(sizeof(TileStage)) + Kept<kTileThreads>::bytes(plan, kRows * kColumns);
}
inline bool tiles_fit(const Arithmetic& plan) { return fits_block(tile_bytes(plan)); }

template <class C>
void launch_tiles(const GemmCall& call, std::int64_t tiles, Stream stream, const char* name) {
  const int bytes = tile_bytes(call.arithmetic);
  allow_dynamic_shared(compute_tile<C>, name);
  compute_tile<C><<<static_cast<unsigned>(tiles), kTileThreads, bytes, stream>>>(call);
  check_launch(name);
}

}  // namespace assay::device::bringup
