#pragma once
// From the sums in registers to D (spec grouped-gemm-2.1): alpha, beta, the bias of the group, one rounding to the type of D. Rows and
// columns that the group does not have are not written. Three ways, for what each can be fast with:
//
//   write_codes    16 bits, without C            a warp turns 64 columns of its 16 rows in shared memory and writes runs of 16 bytes; the
//                                                bias enters as they are read back: a lane has eight columns of it for all its rows
//   write_plain    f32, the sums as they are     each thread its pairs of columns: four threads write the 32 bytes of a sector
//   write_sums     all others                    each thread its pairs
//
// Nothing here may ask for two sums in neighbouring registers (a store of 8 bytes of sums does, not one of codes, which are new
// values): sums would then lie in the register bank of the step that is added to them, and each addition of the kernel's loop would
// take two cycles. Internal to this folder.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/tiles.cuh"

namespace assay::device::fp8_block {

template <Format kType>
struct Elements;
template <>
struct Elements<Format::f32> {
  using Code = std::uint32_t;
  static __device__ Code code(float value) { return value == value ? __float_as_uint(value) : 0x7FFFFFFFu; }
  static __device__ float value(Code code) { return __uint_as_float(code); }
  static __device__ uint2 pair(Code first, Code second) { return make_uint2(first, second); }
};
template <>
struct Elements<Format::bf16> {
  using Code = std::uint16_t;
  static __device__ Code code(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }  // NaN: 0x7FFF
  static __device__ float value(Code code) { return __uint_as_float(std::uint32_t{code} << 16); }
  static __device__ std::uint32_t pair(Code first, Code second) { return first | std::uint32_t{second} << 16; }
  static __device__ std::uint32_t codes(float first, float second) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
    return pair(__bfloat16_as_ushort(both.x), __bfloat16_as_ushort(both.y));
  }
};
template <>
struct Elements<Format::f16> {
  using Code = std::uint16_t;
  static __device__ Code code(float value) { return __half_as_ushort(__float2half_rn(value)); }
  static __device__ float value(Code code) { return __half2float(__ushort_as_half(code)); }
  static __device__ std::uint32_t pair(Code first, Code second) { return first | std::uint32_t{second} << 16; }
  static __device__ std::uint32_t codes(float first, float second) {
    const __half2 both = __floats2half2_rn(first, second);
    return pair(__half_as_ushort(both.x), __half_as_ushort(both.y));
  }
};

// D of one group.
template <Format kType>
struct Output {
  using Element = Elements<kType>;
  using Code = typename Element::Code;
  static constexpr int kRun = 16 / sizeof(Code);  // elements
  Code* d;
  const Code* c;
  const Code* bias;  // of the group's columns, or null
  float alpha, beta;
  std::uint32_t m, n;
  bool runs;  // each row of D, and the bias, begins at a multiple of 16 bytes and has whole runs of them

  __device__ Output(const Problem& problem, const Tile& tile) : m(tile.m), n(static_cast<std::uint32_t>(problem.n)) {
    const std::int64_t at = std::int64_t{tile.first_row} * n;
    d = problem.d_list != nullptr ? static_cast<Code*>(problem.d_list[tile.group]) : static_cast<Code*>(problem.d) + at;
    c = problem.c == nullptr ? d : static_cast<const Code*>(problem.c) + at;
    bias = problem.bias == nullptr ? nullptr : static_cast<const Code*>(problem.bias) + std::int64_t{tile.group} * n;
    const int scalar = problem.scalars_per_group ? tile.group : 0;
    alpha = problem.alpha == nullptr ? 1.0f : problem.alpha[scalar];
    beta = problem.beta == nullptr ? 0.0f : problem.beta[scalar];
    runs = n % kRun == 0 && (reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(bias)) % 16 == 0;
  }

  __device__ float scaled(float sum, Code old) const {
    if (beta != 0) return __fmaf_rn(sum, alpha, __fmul_rn(beta, Element::value(old)));
    return times_alpha(sum);
  }
  __device__ float times_alpha(float sum) const { return alpha != 1 ? __fmaf_rn(sum, alpha, 0.0f) : sum; }

  // One element of row `row`, whose place in D is `at`.
  __device__ Code code(float sum, std::int64_t at, std::uint32_t column) const {
    const Code made = Element::code(scaled(sum, beta != 0 ? c[at] : Code{0}));
    return bias == nullptr ? made : with_bias(made, bias[column]);
  }
  static __device__ Code with_bias(Code made, Code bias) {
    return Element::code(__fadd_rn(Element::value(made), Element::value(bias)));
  }

  // Two neighbours of a row, the first in an even column.
  __device__ void write(std::uint32_t row, std::uint32_t column, float first, float second) const {
    if (row >= m || column >= n) return;
    const std::int64_t at = std::int64_t{row} * n + column;
    const Code code_of_first = code(first, at, column);
    if (runs) {
      using Pair = decltype(Element::pair(0, 0));
      *reinterpret_cast<Pair*>(d + at) = Element::pair(code_of_first, code(second, at + 1, column + 1));
      return;
    }
    d[at] = code_of_first;
    if (column + 1 < n) d[at + 1] = code(second, at + 1, column + 1);
  }
};

inline constexpr int kWarpRows = 16, kRuns = kWarpRows / 4, kPart = 64,
                     kPartPitch = kPart + 8;  // the pitch spreads rows over the banks

// Where a warp turns 64 columns of its rows.
using Turned = std::uint16_t[kWarpRows * kPartPitch];

// Eight elements of 16 bits that follow one another in a row, and the same of the bias.
template <Format kType>
__device__ uint4 run_with_bias(const uint4& run, const uint4& bias) {
  const auto pair = [](std::uint32_t made, std::uint32_t add) {
    const auto low = Output<kType>::with_bias(static_cast<std::uint16_t>(made), static_cast<std::uint16_t>(add));
    const auto high = Output<kType>::with_bias(static_cast<std::uint16_t>(made >> 16), static_cast<std::uint16_t>(add >> 16));
    return Elements<kType>::pair(low, high);
  };
  return make_uint4(pair(run.x, bias.x), pair(run.y, bias.y), pair(run.z, bias.z), pair(run.w, bias.w));
}

// `first`: the row of the tile that is the warp's first. `kAlpha`, `kBias`: whether there are any; most calls have neither, and time between two
// tiles is time without products.
template <Format kType, int kColumns, bool kAlpha, bool kBias>
__device__ void write_codes(const Output<kType>& output, const Tile& tile, std::uint32_t first, Turned& turned,
                            const float (&sums)[kColumns / 2]) {
  using Element = Elements<kType>;
  const unsigned lane = threadIdx.x % 32, matrix = lane / 8;
  const std::uint32_t put = (lane % 8 + matrix % 2 * 8) * kPartPitch + matrix / 2 * 8;  // a row of a matrix of 8x8
  const std::uint32_t take = matrix * kPartPitch + lane % 8 * 8;                        // a run of 8 columns
  const std::uint32_t row = tile.row + first + matrix, column = tile.column + lane % 8 * 8;
  typename Element::Code* const to = output.d + std::int64_t{row} * output.n + column;
  const auto made = [&](float sum) { return kAlpha ? output.times_alpha(sum) : sum; };
#pragma unroll
  for (int part = 0; part < kColumns / kPart; ++part) {
    __syncwarp();  // the part before it has been read
#pragma unroll
    for (int i = 0; i < kPart / 16; ++i) {
      std::uint32_t pairs[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float* const of = sums + 32 * part + 8 * i + 2 * j;
        pairs[j] = Element::codes(made(of[0]), made(of[1]));
      }
      store_matrices(turned + put + 16 * i, pairs);
    }
    __syncwarp();
    uint4 runs[kRuns];
#pragma unroll
    for (int i = 0; i < kRuns; ++i) runs[i] = *reinterpret_cast<const uint4*>(turned + take + 4 * i * kPartPitch);
    if (column + kPart * part >= output.n) continue;
    uint4 bias{};
    if constexpr (kBias) bias = *reinterpret_cast<const uint4*>(output.bias + column + kPart * part);
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      if constexpr (kBias) runs[i] = run_with_bias<kType>(runs[i], bias);
      if (row + 4 * i < output.m) *reinterpret_cast<uint4*>(to + std::int64_t{4 * i} * output.n + kPart * part) = runs[i];
    }
  }
}

// wgmma.cuh says which sums a thread has.
template <int kColumns>
__device__ void write_plain(const Output<Format::f32>& output, const Tile& tile, std::uint32_t first,
                            const float (&sums)[kColumns / 2]) {
  using Element = Elements<Format::f32>;
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t column = tile.column + 2 * (lane % 4);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t row = tile.row + first + lane / 4 + 8 * half;
    if (row >= output.m) return;
    std::uint32_t* const d = output.d + std::int64_t{row} * output.n + column;
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
      if (column + 8 * i >= output.n) break;
      const float* const of = sums + 4 * i + 2 * half;
      *reinterpret_cast<uint2*>(d + 8 * i) = Element::pair(Element::code(of[0]), Element::code(of[1]));
    }
  }
}

template <Format kType, int kColumns>
__device__ void write_sums(const Output<kType>& output, const Tile& tile, std::uint32_t first,
                           const float (&sums)[kColumns / 2]) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t row = tile.row + first + lane / 4, column = tile.column + 2 * (lane % 4);
#pragma unroll
  for (int i = 0; i < kColumns / 8; ++i) {
    output.write(row, column + 8 * i, sums[4 * i], sums[4 * i + 1]);
    output.write(row + 8, column + 8 * i, sums[4 * i + 2], sums[4 * i + 3]);
  }
}

template <Format kType, int kColumns>
__device__ void write_tile_as(const Problem& problem, const Tile& tile, std::uint32_t first, Turned& turned,
                              const float (&sums)[kColumns / 2]) {
  const Output<kType> output(problem, tile);
  if constexpr (kType == Format::f32) {
    const bool plain = output.runs && output.bias == nullptr && output.beta == 0;
    if (plain && output.alpha == 1) return write_plain<kColumns>(output, tile, first, sums);
  } else {
    if (output.runs && output.beta == 0) {
      const auto write = [&](auto alpha, auto bias) {
        write_codes<kType, kColumns, alpha, bias>(output, tile, first, turned, sums);
      };
      constexpr std::true_type some;
      constexpr std::false_type none;
      if (output.alpha != 1) return output.bias != nullptr ? write(some, some) : write(some, none);
      return output.bias != nullptr ? write(none, some) : write(none, none);
    }
  }
  write_sums<kType, kColumns>(output, tile, first, sums);
}

// What one warp has of a tile: 16 rows, `first` of the tile the first of them.
template <int kColumns>
__device__ void write_tile(const Problem& problem, const Tile& tile, std::uint32_t first, Turned& turned,
                           const float (&sums)[kColumns / 2]) {
  const auto write = [&](auto type) { write_tile_as<decltype(type)::value, kColumns>(problem, tile, first, turned, sums); };
  switch (problem.d_type) {
    case Format::f32: return write(std::integral_constant<Format, Format::f32>());
    case Format::bf16: return write(std::integral_constant<Format, Format::bf16>());
    default: return write(std::integral_constant<Format, Format::f16>());
  }
}

}  // namespace assay::device::fp8_block
