#pragma once
// 16 bytes that begin at any byte.

#include <cstdint>

#if defined(__CUDACC__)

namespace assay::device {

// 16 bytes of a row, in two steps, so that a thread can have several on their way: the aligned words that hold them, then the bytes.
class UnalignedRun {
 public:
  // Those of a row of `bytes` bytes from its byte `at` on; what lies past its end is undefined, and all where `wanted` is false. Reads
  // within the words of the row alone, by ordinary loads: an __ldg requires that they are not written while this kernel runs, and it may
  // start early (PDL).
  __device__ void load(const char* row, std::uint32_t bytes, std::uint32_t at, bool wanted) {
    skipped_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(row + at) & 3);
    const auto* const words = reinterpret_cast<const std::uint32_t*>(row + at - skipped_);
    const std::uint32_t end = wanted ? skipped_ + min(bytes - at, 16u) : 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 5; ++i) word_[i] = 4 * i < end ? words[i] : 0;
  }
  __device__ uint4 bytes() const {
    const auto part = [&](int i) { return __funnelshift_r(word_[i], word_[i + 1], 8 * skipped_); };
    return make_uint4(part(0), part(1), part(2), part(3));
  }

 private:
  std::uint32_t word_[5], skipped_;  // bytes of the first word before those that are read
};

}  // namespace assay::device

#endif  // __CUDACC__
