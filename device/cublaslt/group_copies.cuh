#pragma once
// Copies of groups of transposed storage whose pitch, the rows of the group, is not a multiple of 16 bytes. The pitch of the
// copy is. 16 bytes per thread and step, several steps in flight.

#include <cstdint>

#include "device/support/unaligned_read.cuh"

namespace assay::device::group_setup {

// Transposed storage of x or dy: of each group, `columns` rows of M_t elements. Groups for which these rows are not a multiple
// of 16 bytes are copied, with a pitch that is.
struct TransposedStorage {
  char* aligned;  // null: no copies are made
  std::int32_t columns;
  std::int32_t half_bytes;  // of an element
};

struct CopiedOperand : TransposedStorage {
  const char* data;
};

#if defined(__CUDACC__)

// Bytes of `rows` elements; of nvfp4 they are even.
__device__ inline std::uint64_t row_bytes(const TransposedStorage& storage, std::uint32_t rows) {
  return static_cast<std::uint64_t>(rows) * static_cast<std::uint32_t>(storage.half_bytes) / 2;
}
__device__ inline bool is_copied(const TransposedStorage& storage, std::uint32_t rows) {
  return storage.aligned != nullptr && row_bytes(storage, rows) % 16 != 0;
}
// Each group begins 16 bytes per row later than the rows before it require, so that rounded-up rows never overlap the next group.
__device__ inline char* copy_of(const TransposedStorage& storage, int group, std::uint32_t first_row) {
  const std::int64_t at = (row_bytes(storage, first_row) + 15) / 16 * 16 + 16 * static_cast<std::uint64_t>(group);
  return storage.aligned + at * storage.columns;
}

__device__ inline const char* data_of(const CopiedOperand& side, std::uint32_t first_row) {
  return side.data + static_cast<std::int64_t>(first_row) * side.columns * side.half_bytes / 2;
}

// Copies a group of transposed storage, `columns` rows of M_t elements, with each row at a multiple of 16 bytes. Divided among
// `threads` threads.
__device__ inline void copy_aligned(const CopiedOperand& side, int group, std::uint32_t first_row, std::uint32_t rows,
                                    std::int64_t thread, std::int64_t threads) {
  constexpr int kInFlight = 4;
  const auto bytes = static_cast<std::uint32_t>(row_bytes(side, rows));
  const std::int64_t vectors = (bytes + 15) / 16, all = vectors * side.columns;  // bytes is not 0
  const char* from = data_of(side, first_row);
  auto* to = reinterpret_cast<uint4*>(copy_of(side, group, first_row));
  std::int64_t row = thread / vectors, at = thread % vectors;
  const std::int64_t rows_on = threads / vectors, at_on = threads % vectors;
  for (std::int64_t v = thread; v < all; v += kInFlight * threads) {
    UnalignedRun runs[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      runs[i].load(from + row * bytes, bytes, static_cast<std::uint32_t>(16 * at), v + i * threads < all);
      row += rows_on, at += at_on;
      if (at >= vectors) at -= vectors, ++row;
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (v + i * threads < all) to[v + i * threads] = runs[i].bytes();
    }
  }
}

#endif  // __CUDACC__

}  // namespace assay::device::group_setup
