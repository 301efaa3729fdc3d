#pragma once
// Elements of a stored tensor as bit patterns, and what the patterns of a format mean to a comparison.

#include <cstdint>
#include <cstring>

#include "golden/io/fixture.h"

namespace assay::conformance {

// The right-aligned bits of element `at`; e2m1 counts codes, the lower index in the low nibble.
struct Elements {
  Format type = Format::f32;
  const std::byte* bytes = nullptr;
  int bits = 32;

  Elements() = default;
  explicit Elements(const Tensor& tensor) : type(tensor.type), bytes(tensor.bytes.data()), bits(bits_of(tensor.type)) {}

  std::uint64_t operator[](std::int64_t at) const {
    switch (bits) {
      case 4: return (static_cast<std::uint64_t>(bytes[at / 2]) >> (at % 2 * 4)) & 0xF;
      case 8: return static_cast<std::uint64_t>(bytes[at]);
      case 16: return load<std::uint16_t>(at);
      case 32: return load<std::uint32_t>(at);
      default: return load<std::uint64_t>(at);
    }
  }

 private:
  template <class Word>
  std::uint64_t load(std::int64_t at) const {
    Word word;
    std::memcpy(&word, bytes + at * static_cast<std::int64_t>(sizeof word), sizeof word);
    return word;
  }
};

bool is_floating(Format type);  // has a sign bit and a value: f32, bf16, f16, FP8, e2m1
bool is_nan(Format type, std::uint64_t bits);
bool is_finite(Format type, std::uint64_t bits);
bool is_zero(Format type, std::uint64_t bits);  // +0 or -0
double value_of(Format type, std::uint64_t bits);
// Steps between two finite patterns of a floating format, -0 and +0 being one.
std::uint64_t ulp_distance(Format type, std::uint64_t a, std::uint64_t b);

}  // namespace assay::conformance
