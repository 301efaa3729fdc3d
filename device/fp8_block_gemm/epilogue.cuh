#pragma once
// From the sums in registers to D (spec grouped-gemm-2.1): alpha, beta, the bias of the group, one rounding to the type of D. A warp
// puts 64 columns of its 16 rows into shared memory and takes them out by rows, so that it writes whole lines. Rows and columns that
// the group does not have are not written. Internal to this folder.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device/fp8_block_gemm/tiles.cuh"

namespace assay::device::fp8_block {

template <Format kType>
struct Elements;
template <>
struct Elements<Format::f32> {
  using Code = std::uint32_t;
  static __device__ Code code(float value) { return value == value ? __float_as_uint(value) : 0x7FFFFFFFu; }
  static __device__ float value(Code code) { return __uint_as_float(code); }
};
template <>
struct Elements<Format::bf16> {
  using Code = std::uint16_t;
  static __device__ Code code(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }  // NaN: 0x7FFF
  static __device__ float value(Code code) { return __uint_as_float(std::uint32_t{code} << 16); }
};
template <>
struct Elements<Format::f16> {
  using Code = std::uint16_t;
  static __device__ Code code(float value) { return __half_as_ushort(__float2half_rn(value)); }
  static __device__ float value(Code code) { return __half2float(__ushort_as_half(code)); }
};

// D of one group. What a thread takes out at once is a run of 16 bytes of a row.
template <Format kType>
struct Output {
  using Element = Elements<kType>;
  using Code = typename Element::Code;
  static constexpr int kRun = 16 / sizeof(Code);
  Code* d;
  const Code* c;
  const Code* bias;  // of the group's columns, or null
  float alpha, beta;
  std::uint32_t m, n;
  bool runs;  // runs are aligned in D and C, and there is no bias

  __device__ Output(const Problem& problem, const Tile& tile, std::uint32_t first_row)
      : m(tile.m), n(static_cast<std::uint32_t>(problem.n)) {
    const std::int64_t at = std::int64_t{first_row} * n;
    d = static_cast<Code*>(problem.d) + at;
    c = problem.c == nullptr ? d : static_cast<const Code*>(problem.c) + at;
    bias = problem.bias == nullptr ? nullptr : static_cast<const Code*>(problem.bias) + std::int64_t{tile.group} * n;
    const int scalar = problem.scalars_per_group ? tile.group : 0;
    alpha = problem.alpha == nullptr ? 1.0f : problem.alpha[scalar];
    beta = problem.beta == nullptr ? 0.0f : problem.beta[scalar];
    const auto addresses = reinterpret_cast<std::uintptr_t>(d) | reinterpret_cast<std::uintptr_t>(c);
    runs = bias == nullptr && n % kRun == 0 && addresses % 16 == 0;
  }

  __device__ float scaled(float sum, Code old) const {
    if (beta != 0) return __fmaf_rn(sum, alpha, __fmul_rn(beta, Element::value(old)));
    return alpha != 1 ? __fmaf_rn(sum, alpha, 0.0f) : sum;
  }

  // A run of row `row`, whose sums lie at `from` in shared memory.
  __device__ void write(std::uint32_t row, std::uint32_t column, const float* from) const {
    if (row >= m || column >= n) return;
    const std::int64_t at = std::int64_t{row} * n + column;
    if (runs) return beta == 0 && alpha == 1 ? write_run<false>(at, from) : write_run<true>(at, from);
#pragma unroll 1
    for (int i = 0; i < kRun && column + i < n; ++i) {
      Code code = Element::code(scaled(from[i], beta != 0 ? c[at + i] : Code{0}));
      if (bias != nullptr) code = Element::code(__fadd_rn(Element::value(code), Element::value(bias[column + i])));
      d[at + i] = code;
    }
  }

 private:
  union Run {
    uint4 bits;
    Code codes[kRun];
  };

  template <bool kScaled>
  __device__ void write_run(std::int64_t at, const float* from) const {
    float4 sums[kRun / 4];
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) sums[i] = reinterpret_cast<const float4*>(from)[i];
    Run old{}, made{};
    if (kScaled && beta != 0) old.bits = *reinterpret_cast<const uint4*>(c + at);
#pragma unroll
    for (int i = 0; i < kRun / 4; ++i) {
      const float of[4] = {sums[i].x, sums[i].y, sums[i].z, sums[i].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) made.codes[4 * i + j] = Element::code(kScaled ? scaled(of[j], old.codes[4 * i + j]) : of[j]);
    }
    *reinterpret_cast<uint4*>(d + at) = made.bits;
  }
};

inline constexpr int kPart = 64, kPartPitch = kPart + 8, kPartRows = 16;  // the pitch spreads rows over the banks

// Where a warp turns its rows: [kPartRows][kPartPitch].
using Turned = float[kPartRows * kPartPitch];

// Columns `part` * 64 and on of 16 rows, out of `turned`. `first`: the row of the tile that is the warp's first.
template <Format kType>
__device__ void write_part(const Output<kType>& output, const Tile& tile, const Turned& turned, std::uint32_t first, int part) {
  constexpr unsigned kRun = Output<kType>::kRun, kRunsOfRow = kPart / kRun, kRowsAtOnce = 32 / kRunsOfRow;
  const unsigned lane = threadIdx.x % 32, x = kRun * (lane % kRunsOfRow);
#pragma unroll
  for (unsigned i = 0; i < kPartRows; i += kRowsAtOnce) {
    const unsigned row = i + lane / kRunsOfRow;
    output.write(tile.row + first + row, tile.column + kPart * part + x, &turned[row * kPartPitch + x]);
  }
}

// The 16 rows of one warp. `first_row`: of the group, in D; `first`: as above.
template <int kColumns>
__device__ void write_rows(const Problem& problem, const Tile& tile, std::uint32_t first_row, std::uint32_t first, Turned& turned,
                           const float (&sums)[kColumns / 2]) {
  const unsigned lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
#pragma unroll
  for (int part = 0; part < kColumns / kPart; ++part) {
    __syncwarp();  // the part before has been taken out
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const row = turned + (r + 8 * half) * kPartPitch;
      const float* const of = sums + 32 * part + 2 * half;
#pragma unroll
      for (int i = 0; i < 8; ++i) *reinterpret_cast<float2*>(row + 8 * i + 2 * q) = make_float2(of[4 * i], of[4 * i + 1]);
    }
    __syncwarp();
    switch (problem.d_type) {
      case Format::f32: write_part<Format::f32>({problem, tile, first_row}, tile, turned, first, part); break;
      case Format::bf16: write_part<Format::bf16>({problem, tile, first_row}, tile, turned, first, part); break;
      default: write_part<Format::f16>({problem, tile, first_row}, tile, turned, first, part); break;
    }
  }
}

}  // namespace assay::device::fp8_block
