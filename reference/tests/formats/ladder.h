#pragma once
// The second route to every conversion: a format as a ladder of values, one rung for each magnitude code. The rungs are built by
// addition alone, and a conversion is a search for the rung, so nothing here is shared with the code under test.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "reference/types/format.h"

namespace assay::test {

inline std::uint32_t bits_of_float(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float float_of_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

enum class Special { none, last_is_infinity, ieee };  // the meaning of the magnitude codes past the last finite one

// A format as numbers from its definition.
struct Facts {
  Format format;
  const char* name;
  int bits;
  int codes_per_binade;  // 2^(mantissa bits)
  double smallest;       // value of magnitude code 1
  std::uint32_t last;    // largest magnitude code an encoder may produce (for bf16 and f16: infinity's)
  std::uint32_t nan;     // the code every NaN is encoded as
  bool signed_zero;      // false: FNUZ
  Special special;
};

inline void PrintTo(const Facts& facts, std::ostream* out) { *out << facts.name; }

inline const Facts kSignedFormats[] = {
    {Format::e4m3, "e4m3", 8, 8, 0x1p-9, 0x7E, 0x7F, true, Special::none},
    {Format::e5m2, "e5m2", 8, 4, 0x1p-16, 0x7B, 0x7F, true, Special::ieee},
    {Format::e4m3_fnuz, "e4m3_fnuz", 8, 8, 0x1p-10, 0x7F, 0x80, false, Special::none},
    {Format::e5m2_fnuz, "e5m2_fnuz", 8, 4, 0x1p-17, 0x7F, 0x80, false, Special::none},
    {Format::e2m1, "e2m1", 4, 2, 0.5, 0x7, 0x7, true, Special::none},
    {Format::e3m2, "e3m2", 6, 4, 0.0625, 0x1F, 0x1F, true, Special::none},
    {Format::e2m3, "e2m3", 6, 8, 0.125, 0x1F, 0x1F, true, Special::none},
    {Format::bf16, "bf16", 16, 128, 0x1p-133, 0x7F80, 0x7FFF, true, Special::last_is_infinity},
    {Format::f16, "f16", 16, 1024, 0x1p-24, 0x7C00, 0x7FFF, true, Special::last_is_infinity},
};

// E8M0 has neither zero nor sign nor fraction, and rounds up: it is a ladder of its own.
inline const Facts kE8m0 = {Format::e8m0, "e8m0", 8, 1, 0x1p-126, 0xFE, 0xFF, false, Special::none};

inline std::vector<Facts> all_formats() {
  std::vector<Facts> all(std::begin(kSignedFormats), std::end(kSignedFormats));
  all.push_back(kE8m0);
  return all;
}

// values[c] is the value of magnitude code c, up to the last one. Two binades' worth of codes go up by the smallest step
// (the subnormals and the lowest normal binade); after that the step doubles with every binade.
inline std::vector<double> rungs(const Facts& facts) {
  std::vector<double> values;
  if (facts.format == Format::e8m0) {
    double value = 0x1p-127;
    for (std::uint32_t code = 0; code <= facts.last; ++code, value += value) values.push_back(value);
    return values;
  }
  double value = 0, step = facts.smallest;
  const auto binade = static_cast<std::uint32_t>(facts.codes_per_binade);
  for (std::uint32_t code = 0; code <= facts.last; ++code) {
    values.push_back(value);
    if (code >= 2 * binade && code % binade == 0) step += step;
    value += step;
  }
  return values;
}

// first[c]: bits of the smallest f32 magnitude whose code is c. Up to 0x7F800000 (infinity) the code is a step function of
// the magnitude. Between two rungs it changes at the midpoint, which belongs to the even code; E8M0 changes just past a
// rung. Every such point is an f32.
inline std::vector<std::uint32_t> first_magnitudes(const Facts& facts) {
  const std::vector<double> values = rungs(facts);
  std::vector<std::uint32_t> first{0};
  for (std::uint32_t code = 1; code <= facts.last; ++code) {
    const bool rounds_up = facts.format == Format::e8m0;
    const double change = rounds_up ? values[code - 1] : (values[code - 1] + values[code]) / 2;
    const float exact = static_cast<float>(change);
    if (static_cast<double>(exact) != change) std::abort();  // the table of facts is wrong
    const bool change_is_below = rounds_up || (code - 1) % 2 == 0;
    first.push_back(bits_of_float(exact) + (change_is_below ? 1 : 0));
  }
  return first;
}

// The code with its sign.
inline std::uint32_t with_sign(const Facts& facts, bool negative, std::uint32_t magnitude_code) {
  if (!negative || facts.format == Format::e8m0) return magnitude_code;
  if (magnitude_code == 0 && !facts.signed_zero) return 0;
  return magnitude_code + (1u << (facts.bits - 1));
}

// "0x3f800001 (0x1.000002p+0)", whatever the stream's state.
inline std::string show_input(std::uint32_t bits) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%08x (%a)", bits, static_cast<double>(float_of_bits(bits)));
  return text;
}

inline std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

}  // namespace assay::test
