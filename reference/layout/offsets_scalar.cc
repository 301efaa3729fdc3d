#include "reference/layout/offsets.h"

#include <limits>
#include <string>

#include "reference/types/error.h"

namespace assay::scalar {
namespace {

// The inclusive prefix of `splits`.
std::vector<std::int64_t> prefix_of(std::span<const std::int64_t> splits) {
  std::vector<std::int64_t> prefix;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const std::string argument = "splits[" + show(i) + "]";
    require(splits[i] >= 0, argument, splits[i], "a value of at least 0");
    require(!__builtin_add_overflow(sum, splits[i], &sum), argument, splits[i], "a sum of splits that fits int64");
    prefix.push_back(sum);
  }
  return prefix;
}

std::int64_t bytes_of(const OffsetsOutput& output, std::size_t groups) {
  return static_cast<std::int64_t>(groups + (output.leading_zero ? 1 : 0)) * (output.is_int32 ? 4 : 8);
}

bool overlap(const OffsetsOutput& a, const OffsetsOutput& b, std::size_t groups) {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.values);
  const auto b_begin = reinterpret_cast<std::uintptr_t>(b.values);
  return a_begin < b_begin + bytes_of(b, groups) && b_begin < a_begin + bytes_of(a, groups);
}

void store(const OffsetsOutput& output, std::size_t index, std::int64_t value) {
  if (output.is_int32) {
    static_cast<std::int32_t*>(output.values)[index] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::int64_t*>(output.values)[index] = value;
  }
}

}  // namespace

std::vector<std::int64_t> splits_to_offsets(std::span<const std::int64_t> splits, std::int64_t stride) {
  require(stride >= 1, "stride", stride, "a value of at least 1");
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t sum : prefix_of(splits)) {
    std::int64_t offset = 0;
    require(!__builtin_mul_overflow(sum, stride, &offset), "stride", stride,
            "stride * " + show(sum) + " (a sum of splits) to fit int64");
    offsets.push_back(offset);
  }
  return offsets;
}

void splits_to_offsets_multi(std::span<const std::int64_t> splits, std::span<const OffsetsOutput> outputs) {
  const std::vector<std::int64_t> prefix = prefix_of(splits);
  const std::size_t groups = splits.size();
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const OffsetsOutput& output = outputs[o];
    const std::string argument = "outputs[" + show(o) + "]";
    require(output.stride >= 0, argument + ".stride", output.stride, "a value of at least 0");
    for (const std::int64_t sum : prefix) {
      std::int64_t offset = 0;
      const std::int64_t max_value =
          output.is_int32 ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
      require(!__builtin_mul_overflow(sum, output.stride, &offset) && offset <= max_value, argument + ".stride", output.stride,
              "stride * " + show(sum) + " (a sum of splits) to fit " + (output.is_int32 ? "int32" : "int64"));
    }
    if (bytes_of(output, groups) == 0) continue;
    require(output.values != nullptr, argument + ".values", output.values, "a buffer");
    require(reinterpret_cast<std::uintptr_t>(output.values) % (output.is_int32 ? 4 : 8) == 0, argument + ".values", output.values,
            "an address aligned to the type of the values");
    for (std::size_t other = 0; other < o; ++other) {
      require(bytes_of(outputs[other], groups) == 0 || !overlap(outputs[other], output, groups), argument + ".values",
              output.values, "a buffer apart from that of outputs[" + show(other) + "]");
    }
  }

  for (const OffsetsOutput& output : outputs) {
    std::size_t next = 0;
    if (output.leading_zero) store(output, next++, 0);
    for (const std::int64_t sum : prefix) store(output, next++, sum * output.stride);
  }
}

std::vector<std::int64_t> splits_to_offsets_2d(std::span<const std::int64_t> first, std::span<const std::int64_t> last) {
  require(first.size() == last.size(), "last.size()", last.size(), "as many values as first: " + show(first.size()));
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t i = 0; i < first.size(); ++i) {
    require(first[i] >= 0, "first[" + show(i) + "]", first[i], "a value of at least 0");
    const std::string argument = "last[" + show(i) + "]";
    require(last[i] >= 0, argument, last[i], "a value of at least 0");
    std::int64_t offset = 0;
    const bool overflow =
        __builtin_mul_overflow(first[i], last[i], &offset) || __builtin_add_overflow(offset, offsets.back(), &offset);
    require(!overflow, argument, last[i], "a sum of first * last that fits int64");
    offsets.push_back(offset);
  }
  return offsets;
}

}  // namespace assay::scalar
