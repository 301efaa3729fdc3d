#pragma once
// A ragged matrix on the device: its groups lie one after another, group t having splits[t] rows. Only kernels read the
// splits. The buffer may have more rows than the splits sum to; the rows beyond are neither read nor written.

#include <cstdint>

namespace assay::device {

inline constexpr int kMaxGroups = 1024;

struct Rows {
  std::int64_t capacity = 0;             // rows of the buffer
  const std::int64_t* splits = nullptr;  // device, [groups]; null: one group of all rows, `groups` is 1
  int groups = 1;                        // 1 to kMaxGroups; 0 with splits: nothing to do
  bool splits_are_int32 = false;         // `splits` is the address of int32 values

  static Rows of_int32(std::int64_t capacity, const std::int32_t* splits, int groups) {
    return {capacity, reinterpret_cast<const std::int64_t*>(splits), groups, true};
  }
  std::int64_t split_bytes() const { return splits_are_int32 ? 4 : 8; }
};

}  // namespace assay::device
