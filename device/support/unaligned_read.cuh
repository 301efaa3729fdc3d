#pragma once
// 16 bytes that begin at any byte.

#include <cstdint>

#if defined(__CUDACC__)

namespace assay::device {

// 16 bytes of a row of `bytes` bytes, starting at its byte `at`; zeros past its end. Reads the aligned words that hold them, by
// ordinary loads: an __ldg requires that they are not written while this kernel runs, and it may start early (PDL).
__device__ inline uint4 read_unaligned(const char* row, std::uint32_t bytes, std::uint32_t at) {
  const auto skipped = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(row + at) & 3);
  const auto* words = reinterpret_cast<const std::uint32_t*>(row + at - skipped);
  const std::uint32_t left = min(bytes - at, 16u);  // of the row
  std::uint32_t word[5], made[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 5; ++i) word[i] = 4 * i < skipped + left ? words[i] : 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t value = __funnelshift_r(word[i], word[i + 1], 8 * skipped);
    const std::uint32_t kept = left > 4 * i ? min(left - 4 * i, 4u) : 0;  // bytes
    made[i] = kept == 4 ? value : value & ((1u << 8 * kept) - 1);
  }
  return make_uint4(made[0], made[1], made[2], made[3]);
}

}  // namespace assay::device

#endif  // __CUDACC__
