#pragma once
// Matrix instructions of a warp, by their layout of fragments. Each sum is rounded once, to nearest or, reversed, toward zero: no
// result may depend on how a device rounds.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "device/tests/emulated_gemm/run_kernel.h"

namespace assay::device::host {

// A or B of a warp: kWords words of each lane.
template <std::size_t kWords>
struct Fragments {
  std::uint64_t pairs[(kWords + 1) / 2][32];
  explicit Fragments(const std::uint32_t (&own)[kWords]) {
    for (std::size_t w = 0; w < kWords; w += 2) {
      const std::uint64_t* all = exchange(own[w] | (w + 1 < kWords ? std::uint64_t{own[w + 1]} << 32 : 0));
      for (int lane = 0; lane < 32; ++lane) pairs[w / 2][lane] = all[lane];
    }
  }
  // One half of a word of a lane, bf16.
  double value(int lane, int word, int half) const {
    const auto both = static_cast<std::uint32_t>(pairs[word / 2][lane] >> (32 * (word % 2)));
    return std::bit_cast<float>(half == 0 ? both << 16 : both & 0xFFFF'0000u);
  }
};

// Element k of a line of A or B lies with the lane of its line and k % 8 / 2; words of A: 8 rows further, then 8 k further.
template <std::size_t kRowWords, std::size_t kColumnWords>
void multiply_bf16(float (&d)[4], const std::uint32_t (&a)[kRowWords], const std::uint32_t (&b)[kColumnWords]) {
  const Fragments<kRowWords> rows(a);
  const Fragments<kColumnWords> columns(b);
  const int lane = static_cast<int>(thread_index.x % 32), g = lane / 4, q = lane % 4;
  for (int i = 0; i < 4; ++i) {
    double sum = d[i];
    for (int k = 0; k < 8 * static_cast<int>(kColumnWords); ++k) {
      const int holder = k % 8 / 2, further = k / 8;
      sum += rows.value(4 * g + holder, i / 2 + 2 * further, k % 2) * columns.value(4 * (2 * q + i % 2) + holder, further, k % 2);
    }
    const auto nearest = static_cast<float>(sum);
    const bool beyond = reversed && std::fabs(static_cast<double>(nearest)) > std::fabs(sum);
    d[i] = beyond ? std::nextafter(nearest, 0.0f) : nearest;
  }
}

// Operands in the order of the instruction: D, A, B, and D again as C.
inline void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& d0, float& d1, float& d2, float& d3, std::uint32_t a0,
                                                                std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                                                std::uint32_t b0, std::uint32_t b1) {
  float d[4] = {d0, d1, d2, d3};
  multiply_bf16(d, {a0, a1, a2, a3}, {b0, b1});
  d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}
inline void mma_sync_aligned_m16n8k8_row_col_f32_bf16_bf16_f32(float& d0, float& d1, float& d2, float& d3, std::uint32_t a0,
                                                               std::uint32_t a1, std::uint32_t b0) {
  float d[4] = {d0, d1, d2, d3};
  multiply_bf16(d, {a0, a1}, {b0});
  d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}

}  // namespace assay::device::host
