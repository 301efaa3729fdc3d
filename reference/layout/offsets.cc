#include "reference/layout/offsets.h"

#include <algorithm>
#include <limits>

#include "reference/types/error.h"

// One pass sums and detects possible errors; a request that may be wrong goes to the scalar version, which checks each
// step and names the wrong value.

namespace assay {
namespace {

// prefix[0] = 0, prefix[i+1] = splits[0] + ... + splits[i]. False for a negative split or a sum past int64: two
// non-negative values sum to less than 2^64, so the first sum past int64 shows in the sign bit.
bool prefix_of(std::span<const std::int64_t> splits, std::int64_t* prefix) {
  std::uint64_t sum = 0;
  std::uint64_t signs = 0;
  prefix[0] = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto split = static_cast<std::uint64_t>(splits[i]);
    sum += split;
    signs |= split | sum;
    prefix[i + 1] = static_cast<std::int64_t>(sum);
  }
  return signs >> 63 == 0;
}

// Offsets never decrease, so all fit if the last one does.
bool fits(std::int64_t total, std::int64_t stride, std::int64_t max_value) {
  std::int64_t last = 0;
  return !__builtin_mul_overflow(total, stride, &last) && last <= max_value;
}

template <class Value>
void store(std::span<const std::int64_t> sums, std::int64_t stride, void* values) {
  std::transform(sums.begin(), sums.end(), static_cast<Value*>(values),
                 [stride](std::int64_t sum) { return static_cast<Value>(sum * stride); });
}

struct Bytes {
  std::uintptr_t begin = 0, end = 0;
};

bool overlap_somewhere(std::vector<Bytes>& buffers) {
  std::sort(buffers.begin(), buffers.end(), [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < buffers.size(); ++i) {
    if (buffers[i].begin < buffers[i - 1].end) return true;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> splits_to_offsets(std::span<const std::int64_t> splits, std::int64_t stride) {
  std::vector<std::int64_t> offsets(splits.size() + 1);
  if (stride < 1 || !prefix_of(splits, offsets.data()) ||
      !fits(offsets.back(), stride, std::numeric_limits<std::int64_t>::max())) {
    return scalar::splits_to_offsets(splits, stride);
  }
  for (std::int64_t& offset : offsets) offset *= stride;
  return offsets;
}

void splits_to_offsets_multi(std::span<const std::int64_t> splits, std::span<const OffsetsOutput> outputs) {
  std::vector<std::int64_t> prefix(splits.size() + 1);
  bool valid = prefix_of(splits, prefix.data());
  std::vector<Bytes> buffers;
  for (const OffsetsOutput& output : outputs) {
    const std::int64_t max_value =
        output.is_int32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
    const std::size_t width = output.is_int32 ? 4 : 8;
    const std::size_t count = prefix.size() - (output.leading_zero ? 0 : 1);
    const auto begin = reinterpret_cast<std::uintptr_t>(output.values);
    valid = valid && output.stride >= 0 && fits(prefix.back(), output.stride, max_value);
    valid = valid && (count == 0 || (begin != 0 && begin % width == 0));
    if (count > 0) buffers.push_back({begin, begin + count * width});
  }
  if (!valid || overlap_somewhere(buffers)) return scalar::splits_to_offsets_multi(splits, outputs);

  for (const OffsetsOutput& output : outputs) {
    const auto sums = std::span<const std::int64_t>(prefix).subspan(output.leading_zero ? 0 : 1);
    if (output.is_int32) {
      store<std::int32_t>(sums, output.stride, output.values);
    } else {
      store<std::int64_t>(sums, output.stride, output.values);
    }
  }
}

std::vector<std::int64_t> splits_to_offsets_2d(std::span<const std::int64_t> first, std::span<const std::int64_t> last) {
  if (first.size() != last.size()) return scalar::splits_to_offsets_2d(first, last);
  std::vector<std::int64_t> offsets(first.size() + 1);
  std::int64_t sum = 0;
  bool invalid = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::int64_t product = 0;
    invalid |= (first[i] | last[i]) < 0;
    invalid |= __builtin_mul_overflow(first[i], last[i], &product);
    invalid |= __builtin_add_overflow(sum, product, &sum);
    offsets[i + 1] = sum;
  }
  if (invalid) return scalar::splits_to_offsets_2d(first, last);
  return offsets;
}

}  // namespace assay
