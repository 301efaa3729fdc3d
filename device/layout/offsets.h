#pragma once
// Offsets of the groups of a ragged tensor, on the device: the calls of reference/layout/offsets.h over device memory.
// Each is one kernel launch, reads `splits` on the device only, allocates nothing and may be captured. Outputs may overlap
// neither the splits nor one another.

#include <cstdint>
#include <span>

#include "device/support/error.h"
#include "device/support/stream.h"

namespace assay::device {

struct OffsetsOutput {
  std::int64_t stride = 1;   // 0 or more
  bool leading_zero = true;  // groups + 1 values from 0; false: groups values, the inclusive prefix
  bool is_int32 = false;
  void* values = nullptr;  // device
};
inline constexpr int kMaxOffsetsOutputs = 16;

// offsets [groups + 1] = 0, stride * splits[0], stride * (splits[0] + splits[1]), ...
// Errors: InvalidArgument for null pointers, groups below 0, stride below 1. On the device (status word): a negative split,
// a value past int64; nothing is written then.
void splits_to_offsets(const std::int64_t* splits, int groups, std::int64_t stride, std::int64_t* offsets, std::uint32_t* status,
                       Stream stream);

// Up to kMaxOffsetsOutputs outputs from one reading. `splits` int64, or int32 with `splits_are_int32`.
void splits_to_offsets_multi(const void* splits, bool splits_are_int32, int groups, std::span<const OffsetsOutput> outputs,
                             std::uint32_t* status, Stream stream);

// Prefix sums of first[j] * last[j]: groups + 1 values; everything int64, or everything int32.
void splits_to_offsets_2d(const void* first, const void* last, bool are_int32, int groups, void* offsets, std::uint32_t* status,
                          Stream stream);

}  // namespace assay::device
