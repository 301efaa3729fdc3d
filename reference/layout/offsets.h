#pragma once
// Offsets of the groups of a ragged tensor, from the split sizes that a router produced (spec offsets-1.1).

#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// offsets[0] = 0 and offsets[i+1] = stride * (splits[0] + ... + splits[i]): G+1 values. Zero splits and zero groups are
// fine. Errors (InvalidArgument): a negative split, stride below 1, a value past int64.
std::vector<std::int64_t> splits_to_offsets(std::span<const std::int64_t> splits, std::int64_t stride = 1);

// One output of the several that a single pass can write (spec offsets-1.2).
struct OffsetsOutput {
  std::int64_t stride = 1;   // 0 or more
  bool leading_zero = true;  // G+1 values from 0; false: G values, the inclusive prefix
  bool is_int32 = false;     // stored as int32; otherwise int64
  void* values = nullptr;
};

// Every output from one reading of `splits`, which an output may overlap; outputs may not overlap one another. Without
// outputs only the splits are checked. Errors: a negative split, a sum of splits past int64, a negative stride, a null,
// misaligned or overlapping output, a value past the output's type. When an error is thrown no output has been written.
void splits_to_offsets_multi(std::span<const std::int64_t> splits, std::span<const OffsetsOutput> outputs);

// Prefix of first[j] * last[j], G+1 values (spec offsets-1.3). Errors: different lengths, a negative value, overflow of int64.
std::vector<std::int64_t> splits_to_offsets_2d(std::span<const std::int64_t> first, std::span<const std::int64_t> last);

namespace scalar {
// The same, one checked step at a time; with equal results and errors.
std::vector<std::int64_t> splits_to_offsets(std::span<const std::int64_t> splits, std::int64_t stride = 1);
void splits_to_offsets_multi(std::span<const std::int64_t> splits, std::span<const OffsetsOutput> outputs);
std::vector<std::int64_t> splits_to_offsets_2d(std::span<const std::int64_t> first, std::span<const std::int64_t> last);
}  // namespace scalar

}  // namespace assay
