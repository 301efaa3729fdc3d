#include "conformance/diagnose/other_calls/input_changes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/ops/elements.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/f16.h"

namespace assay::conformance::diagnosis {
namespace {

using Bits = std::uint64_t;

// ---- Elements, one by one -------------------------------------------------------------------------------------------

void put(Tensor& tensor, std::int64_t at, Bits bits) {
  const int width = bits_of(tensor.type) / 8;
  std::memcpy(tensor.bytes.data() + at * width, &bits, static_cast<std::size_t>(width));  // little-endian
}

template <class Change>
bool each(Tensor& tensor, Change change) {
  if (bits_of(tensor.type) < 8 || !is_floating(tensor.type)) return false;
  const Elements elements(tensor);
  bool changed = false;
  for (std::int64_t at = 0; at < tensor.elements(); ++at) {
    const Bits before = elements[at], after = change(tensor.type, before);
    if (after == before) continue;
    put(tensor, at, after);
    changed = true;
  }
  return changed;
}

Bits encode(Format type, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case Format::f32: return std::bit_cast<std::uint32_t>(narrow);
    case Format::bf16: return scalar::encode_bf16(narrow);
    case Format::f16: return scalar::encode_f16(narrow);
    case Format::e4m3: return scalar::encode_e4m3(narrow);
    default: return 0;
  }
}
bool can_encode(Format type) {
  return type == Format::f32 || type == Format::bf16 || type == Format::f16 || type == Format::e4m3;
}

bool zeros(const ChangedInput&, Tensor& tensor) {
  if (!is_floating(tensor.type)) return false;
  std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0});
  return true;
}
bool ones(const ChangedInput&, Tensor& tensor) {
  if (tensor.type == Format::e8m0) {
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{127});
    return true;
  }
  return can_encode(tensor.type) && each(tensor, [](Format type, Bits) { return encode(type, 1); });
}
bool inverted(const ChangedInput&, Tensor& tensor) {
  if (tensor.type == Format::e8m0) {
    for (std::byte& code : tensor.bytes)
      code = code == std::byte{0xff} ? code : static_cast<std::byte>(std::clamp(254 - static_cast<int>(code), 0, 254));
    return true;
  }
  return can_encode(tensor.type) &&
         each(tensor, [](Format type, Bits bits) { return is_nan(type, bits) ? bits : encode(type, 1 / value_of(type, bits)); });
}
bool doubled(const ChangedInput&, Tensor& tensor) {
  return can_encode(tensor.type) && each(tensor, [](Format type, Bits bits) {
           return is_finite(type, bits) ? encode(type, 2 * value_of(type, bits)) : bits;
         });
}
bool negated(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return bits ^ sign_bit_of(type); });
}
bool unsigned_values(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return bits & ~sign_bit_of(type); });
}
bool positive_zeros(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return bits == sign_bit_of(type) ? 0 : bits; });
}
Bits least_normal(Format type) {
  switch (type) {
    case Format::f32: return 0x0080'0000;
    case Format::bf16: return 0x0080;
    case Format::f16: return 0x0400;
    case Format::e5m2: return 0x04;
    default: return 0x08;  // e4m3
  }
}
}  // namespace

bool no_subnormals(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) {
    return (bits & ~sign_bit_of(type)) < least_normal(type) ? bits & sign_bit_of(type) : bits;
  });
}

namespace {
bool positive_zero_for_subnormals(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return (bits & ~sign_bit_of(type)) < least_normal(type) ? 0 : bits; });
}
}  // namespace

bool lowest_scale(Tensor& tensor, std::byte as) {
  if (tensor.type != Format::e8m0) return false;
  const std::vector<std::byte> before = tensor.bytes;
  std::replace(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0}, as);
  return tensor.bytes != before;
}

namespace {
bool lowest_scale_doubled(const ChangedInput&, Tensor& tensor) { return lowest_scale(tensor, std::byte{1}); }
bool nan_as_zero(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return is_nan(type, bits) ? 0 : bits; });
}
bool no_infinities(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return is_finite(type, bits) || is_nan(type, bits) ? bits : bits - 1; });
}
bool no_specials(const ChangedInput&, Tensor& tensor) {
  return each(tensor, [](Format type, Bits bits) { return is_finite(type, bits) ? bits : 0; });
}
bool as_bf16(const ChangedInput&, Tensor& tensor) {
  return tensor.type == Format::f32 && each(tensor, [](Format, Bits bits) {
           return Bits{scalar::encode_bf16(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))} << 16;
         });
}
bool cut_to_bf16(const ChangedInput&, Tensor& tensor) {
  return tensor.type == Format::f32 && each(tensor, [](Format, Bits bits) { return bits & 0xffff'0000; });
}
bool as_power_of_two(const ChangedInput&, Tensor& tensor) {
  return tensor.type == Format::f32 && each(tensor, [](Format, Bits bits) { return bits & 0xff80'0000; });
}

// ---- Places ---------------------------------------------------------------------------------------------------------

// Bytes of one group, where every group has as many.
std::size_t bytes_of_group(const ChangedInput& input, const Tensor& tensor) {
  if (input.groups < 2 || tensor.bytes.empty() || tensor.elements() % input.groups != 0) return 0;
  return tensor.bytes.size() / static_cast<std::size_t>(input.groups);
}
std::int64_t width_of(const Tensor& tensor) { return std::max(bits_of(tensor.type) / 8, 1); }

bool turned(Tensor& tensor, std::size_t by) {
  const std::vector<std::byte> before = tensor.bytes;
  std::rotate(tensor.bytes.begin(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(by), tensor.bytes.end());
  return before != tensor.bytes;
}
bool of_group_before(const ChangedInput& input, Tensor& tensor) {
  const std::size_t size = bytes_of_group(input, tensor);
  return size != 0 && turned(tensor, tensor.bytes.size() - size);
}
bool of_group_after(const ChangedInput& input, Tensor& tensor) {
  const std::size_t size = bytes_of_group(input, tensor);
  return size != 0 && turned(tensor, size);
}
bool of_one_group(const ChangedInput& input, Tensor& tensor, bool last) {
  const std::size_t size = bytes_of_group(input, tensor);
  if (size == 0) return false;
  const std::vector<std::byte> before = tensor.bytes;
  const std::size_t from = last ? before.size() - size : 0;
  for (std::size_t at = 0; at < before.size(); ++at) tensor.bytes[at] = before[from + at % size];
  return tensor.bytes != before;
}
bool of_first_group(const ChangedInput& input, Tensor& tensor) { return of_one_group(input, tensor, false); }
bool of_last_group(const ChangedInput& input, Tensor& tensor) { return of_one_group(input, tensor, true); }

bool of_group_before_but_first(const ChangedInput& input, Tensor& tensor) {
  const std::size_t size = bytes_of_group(input, tensor);
  if (size == 0) return false;
  const std::vector<std::byte> before = tensor.bytes;
  std::copy(before.begin(), before.end() - static_cast<std::ptrdiff_t>(size),
            tensor.bytes.begin() + static_cast<std::ptrdiff_t>(size));
  return tensor.bytes != before;
}
bool of_group_after_but_last(const ChangedInput& input, Tensor& tensor) {
  const std::size_t size = bytes_of_group(input, tensor);
  if (size == 0) return false;
  const std::vector<std::byte> before = tensor.bytes;
  std::copy(before.begin() + static_cast<std::ptrdiff_t>(size), before.end(), tensor.bytes.begin());
  return tensor.bytes != before;
}
bool one_element_on(const ChangedInput&, Tensor& tensor) {
  return tensor.bytes.size() > static_cast<std::size_t>(width_of(tensor)) &&
         turned(tensor, static_cast<std::size_t>(width_of(tensor)));
}
bool one_element_back(const ChangedInput&, Tensor& tensor) {
  return tensor.bytes.size() > static_cast<std::size_t>(width_of(tensor)) &&
         turned(tensor, tensor.bytes.size() - static_cast<std::size_t>(width_of(tensor)));
}
bool by_a_row(Tensor& tensor, bool on) {
  if (tensor.shape.size() != 2 || tensor.shape[0] < 2) return false;
  const std::size_t row = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  return row > 0 && turned(tensor, on ? row : tensor.bytes.size() - row);
}
bool one_row_on(const ChangedInput&, Tensor& tensor) { return by_a_row(tensor, true); }
bool one_row_back(const ChangedInput&, Tensor& tensor) { return by_a_row(tensor, false); }
bool reversed(const ChangedInput&, Tensor& tensor) {
  const auto width = static_cast<std::size_t>(width_of(tensor));
  const std::vector<std::byte> before = tensor.bytes;
  for (std::size_t at = 0; at + width <= before.size(); at += width)
    std::memcpy(tensor.bytes.data() + before.size() - width - at, before.data() + at, width);
  return tensor.bytes != before;
}
// [rows, columns] whose elements stand where those of [columns, rows] would.
bool transposed(const ChangedInput&, Tensor& tensor) {
  if (tensor.shape.size() != 2 || tensor.shape[0] < 2 || tensor.shape[1] < 2 || bits_of(tensor.type) < 8) return false;
  const auto width = static_cast<std::size_t>(width_of(tensor));
  const auto rows = static_cast<std::size_t>(tensor.shape[0]), columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::vector<std::byte> before = tensor.bytes;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(tensor.bytes.data() + (r * columns + c) * width, before.data() + (c * rows + r) * width, width);
  }
  return true;
}
bool swapped_nibbles(const ChangedInput&, Tensor& tensor) {
  if (tensor.type != Format::e2m1) return false;
  for (std::byte& each : tensor.bytes) each = each << 4 | each >> 4;
  return true;
}

// ---- Types ----------------------------------------------------------------------------------------------------------

template <Format from, Format to>
bool read_as(const ChangedInput&, Tensor& tensor) {
  if (tensor.type != from) return false;
  tensor.type = to;
  tensor.bytes.resize(static_cast<std::size_t>(bytes_of(to, tensor.elements())));
  return true;
}
// Reinterpreted bits, converted to a type that the call accepts.
template <Format from, Format as>
bool taken_as(const ChangedInput&, Tensor& tensor) {
  return tensor.type == from && each(tensor, [](Format type, Bits bits) {
           return is_nan(as, bits) ? encode(type, NAN) : encode(type, value_of(as, bits));
         });
}

constexpr InputChange kChanges[] = {
    {"of the group before", of_group_before},
    {"of the group after", of_group_after},
    {"of the first group for all", of_first_group},
    {"of the last group for all", of_last_group},
    {"of the group before, but for the first group", of_group_before_but_first},
    {"of the group after, but for the last group", of_group_after_but_last},
    {"taken as zeros", zeros},
    {"taken as ones", ones},
    {"inverted: 1/value for the value", inverted},
    {"taken twice", doubled},
    {"negated", negated},
    {"without its signs", unsigned_values},
    {"having +0 for -0", positive_zeros},
    {"having 0 for its subnormals (FTZ)", no_subnormals},
    {"having +0 for its subnormals (FTZ)", positive_zero_for_subnormals},
    {"having 2^-126 for 2^-127, the code 0", lowest_scale_doubled},
    {"having 0 for NaN", nan_as_zero},
    {"having the largest finite value for infinity", no_infinities},
    {"having 0 for NaN and infinity", no_specials},
    {"rounded to bf16 first", as_bf16},
    {"cut to bf16 first", cut_to_bf16},
    {"cut to powers of two", as_power_of_two},
    {"read one element further on", one_element_on},
    {"read one element too early", one_element_back},
    {"read one row further on", one_row_on},
    {"read one row too early", one_row_back},
    {"read from the end", reversed},
    {"read transposed", transposed},
    {"with its nibbles swapped", swapped_nibbles},
    {"taken for f16", taken_as<Format::bf16, Format::f16>},
    {"taken for bf16", taken_as<Format::f16, Format::bf16>},
    {"taken for e5m2", read_as<Format::e4m3, Format::e5m2>},
    {"taken for e4m3", read_as<Format::e5m2, Format::e4m3>},
    {"taken for i32", read_as<Format::i64, Format::i32>},
};

}  // namespace

std::span<const InputChange> input_changes() { return kChanges; }

std::vector<std::string> input_change_texts() {
  std::vector<std::string> texts;
  for (const auto& row : kChanges) texts.emplace_back(row.text);
  return texts;
}

}  // namespace assay::conformance::diagnosis
