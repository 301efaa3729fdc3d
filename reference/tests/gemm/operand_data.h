#pragma once
// Codes of the operands of a product, in classes of data that each reach a place where a bit can be lost.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reference/types/format.h"

namespace assay::gemm_suite {

inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

struct Random {
  std::uint64_t state;
  std::uint64_t next() { return mixed(state++); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
};

enum class Data {
  uniform,         // exponents fall off by halves, as those of a normal distribution do
  raw,             // every code: subnormals, infinities and NaN too
  finite,          // every finite code
  cancelling,      // exponents within 8, and half of the products followed by their negatives
  subnormal,       // nearly all subnormal
  near_overflow,   // the largest exponents: 16-bit sums pass 2^128
  near_underflow,  // bf16 products about 2^-150: results are subnormal, grids lie below the floor
  mostly_zero,     // both signs of zero
  largest,         // one significand, all ones: the sum needs every carry bit
  narrow_edge,     // bf16 exponents of +-42, where the narrow kernel ends, of +-43 or of +-60, with zeros
  rare_special,    // uniform, with one infinity or NaN in some hundred elements
};
constexpr Data kEveryData[] = {Data::uniform,   Data::raw,           Data::finite,         Data::cancelling,
                               Data::subnormal, Data::near_overflow, Data::near_underflow, Data::mostly_zero,
                               Data::largest,   Data::narrow_edge,   Data::rare_special};
constexpr const char* kDataNames[] = {"uniform",        "raw",         "finite",  "cancelling",  "subnormal",   "near_overflow",
                                      "near_underflow", "mostly_zero", "largest", "narrow_edge", "rare_special"};
inline const char* name_of(Data data) { return kDataNames[static_cast<int>(data)]; }

struct Fields {
  int exponent_bits, mantissa_bits;
  bool has_infinity, has_nan;
};
inline Fields fields_of(Format format) {
  switch (format) {
    case Format::bf16: return {8, 7, true, true};
    case Format::f16: return {5, 10, true, true};
    case Format::e5m2: return {5, 2, true, true};
    case Format::e4m3: return {4, 3, false, true};
    default: return {2, 1, false, false};  // e2m1
  }
}

inline bool finite(Format format, std::uint32_t code) {
  const Fields f = fields_of(format);
  const std::uint32_t magnitude = code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  if (f.has_infinity) return magnitude >> f.mantissa_bits != (1u << f.exponent_bits) - 1;
  return !f.has_nan || magnitude != (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
}

inline std::uint32_t code_of(Format format, int sign, int exponent_field, std::uint32_t mantissa) {
  const Fields f = fields_of(format);
  const int last = (1 << f.exponent_bits) - 1 - (f.has_infinity ? 1 : 0);
  const auto field = static_cast<std::uint32_t>(std::clamp(exponent_field, 0, last));
  std::uint32_t code = field << f.mantissa_bits | (mantissa & ((1u << f.mantissa_bits) - 1));
  if (!finite(format, code)) --code;
  return code | static_cast<std::uint32_t>(sign) << (f.exponent_bits + f.mantissa_bits);
}

// Element (line, k) of an operand. `second` tells the two operands apart: planted pairs differ in sign in one of them.
inline std::uint32_t element(Format format, Data data, bool second, std::uint64_t seed, std::int64_t line, std::int64_t k) {
  const Fields f = fields_of(format);
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int last = (1 << f.exponent_bits) - 1;
  const bool planted = data == Data::cancelling && k % 2 == 1;
  const auto source_k = static_cast<std::uint64_t>(planted ? k - 1 : k);
  Random random{mixed(seed * 2 + second) ^ mixed(static_cast<std::uint64_t>(line) * 1000003 + source_k)};
  const auto mantissa = static_cast<std::uint32_t>(random.next());
  const int sign = random.below(2);
  const int drop = std::countr_zero(random.next() | 1u << 20);
  switch (data) {
    case Data::uniform: return code_of(format, sign, bias + 1 - drop, mantissa);
    case Data::raw: return mantissa & ((1u << (f.exponent_bits + f.mantissa_bits + 1)) - 1);
    case Data::finite: return code_of(format, sign, random.below(last + 1), mantissa);
    case Data::cancelling: {
      const bool flipped = planted && second && mixed(seed ^ static_cast<std::uint64_t>(k)) % 2 == 0;
      return code_of(format, sign != static_cast<int>(flipped), bias - 4 + random.below(8), mantissa);
    }
    case Data::subnormal: return code_of(format, sign, random.below(16) == 0 ? 1 + random.below(2) : 0, mantissa);
    case Data::near_overflow: {
      const int top = format == Format::bf16 ? bias + 63 : last;  // products about 2^127
      return code_of(format, sign, top - random.below(3), mantissa);
    }
    case Data::near_underflow: {
      const int low = format == Format::bf16 ? bias - 75 : 0;
      return code_of(format, sign, low + random.below(14), mantissa);
    }
    case Data::mostly_zero:
      return random.below(6) != 0 ? code_of(format, sign, 0, 0) : code_of(format, sign, bias - drop, mantissa);
    case Data::largest: {
      // Small products first, so that C has the exponent of the large ones that follow and its sign.
      const int exponent = bias + static_cast<int>(line % 2) - (k / 32 % 3 == 0 ? 3 : 0);
      return code_of(format, line % 3 == 0 && !second, exponent, ~0u);
    }
    case Data::narrow_edge: {
      // Blocks of 16 that hold the smallest products only, and zeros that meet the largest elements.
      constexpr int kBf16Edges[] = {42, 43, 60};
      const int edge = format == Format::bf16 ? kBf16Edges[seed % 3] : f.exponent_bits >= 5 ? 14 : 3;
      const bool low = mixed(seed + static_cast<std::uint64_t>(k / 16)) % 3 != 0;
      const bool empty = mixed(seed + 99 + static_cast<std::uint64_t>(k)) % 4 == 0;
      if (low && empty) return second ? code_of(format, sign, 0, 0) : code_of(format, sign, bias + edge, mantissa);
      if (random.below(4) == 0) return code_of(format, sign, 0, 0);
      return code_of(format, sign, bias + (!low && random.below(2) == 0 ? edge : -edge), mantissa);
    }
    case Data::rare_special:
      if (random.below(400) != 0) return code_of(format, sign, bias + 1 - drop, mantissa);
      return (1u << (f.exponent_bits + f.mantissa_bits)) - 1 - (random.below(2) == 0 ? 0u : (1u << f.mantissa_bits) - 1);
  }
  return 0;
}

inline void put(Format format, std::vector<std::uint8_t>& bytes, std::int64_t at, std::uint32_t code) {
  const auto index = static_cast<std::size_t>(at);
  switch (bits_of(format)) {
    case 4: bytes[index / 2] = static_cast<std::uint8_t>(bytes[index / 2] | (code & 0xF) << (index % 2 * 4)); break;
    case 8: bytes[index] = static_cast<std::uint8_t>(code); break;
    case 16: {
      const auto half = static_cast<std::uint16_t>(code);
      std::memcpy(&bytes[2 * index], &half, 2);
      break;
    }
    default: std::memcpy(&bytes[4 * index], &code, 4);
  }
}

}  // namespace assay::gemm_suite
