#include "reference/approximations/approximations.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/approximations/tables.h"

namespace assay {
namespace {

constexpr std::uint32_t kSign = 0x8000'0000, kInfinity = 0x7F80'0000, kMantissa = 0x007F'FFFF, kSmallestNormal = 0x0080'0000;

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float not_a_number() { return from_bits(0x7FFF'FFFF); }

int exponent_of(std::uint32_t magnitude) { return static_cast<int>(magnitude >> 23) - 127; }

// A result of the device is a NaN of these bits, whatever NaN the processor makes.
float canonical(float value) { return std::isnan(value) ? not_a_number() : value; }

}  // namespace

float flush_subnormal(float a) {
  const std::uint32_t bits = bits_of(a);
  return (bits & ~kSign) < kSmallestNormal ? from_bits(bits & kSign) : a;
}

float rcp_approx_ftz(float a) {
  const std::uint32_t sign = bits_of(a) & kSign, magnitude = bits_of(a) & ~kSign;
  if (magnitude > kInfinity) return not_a_number();
  if (magnitude < kSmallestNormal) return from_bits(sign | kInfinity);
  const std::uint32_t quotient = rcp_table()[magnitude & kMantissa];  // of 1.m: in (0.5, 1]
  const int exponent = static_cast<int>(quotient >> 23) - exponent_of(magnitude);
  if (exponent <= 0) return from_bits(sign);
  return from_bits(sign | static_cast<std::uint32_t>(exponent) << 23 | (quotient & kMantissa));
}

float rcp_approx(float a) {
  const float scale = std::fabs(a) > 0x1p126f ? 0.25f : std::fabs(a) < 0x1p-126f ? 0x1p24f : 1.0f;
  return canonical(rcp_approx_ftz(a * scale) * scale);
}

float ex2_approx_ftz(float a) {
  if (std::isnan(a)) return not_a_number();
  if (a >= 128) return from_bits(kInfinity);
  if (a < -126) return 0;
  // The operand is cut to multiples of 2^-23, toward zero; each sign has a table of its own.
  const auto steps = static_cast<std::int64_t>(std::fabs(static_cast<double>(a)) * 0x1p23);
  const auto whole = static_cast<std::uint32_t>(steps >> 23), part = static_cast<std::uint32_t>(steps) & kMantissa;
  return from_bits(a < 0 ? negative_ex2_table()[part] - (whole << 23) : ex2_table()[part] + (whole << 23));
}

float ex2_approx(float a) {
  if (!(a < -126)) return ex2_approx_ftz(a);
  const float root = ex2_approx_ftz(a * 0.5f);
  return root * root;
}

float rsqrt_approx_ftz(float a) {
  const std::uint32_t sign = bits_of(a) & kSign, magnitude = bits_of(a) & ~kSign;
  if (magnitude > kInfinity) return not_a_number();
  if (magnitude < kSmallestNormal) return from_bits(sign | kInfinity);
  if (sign != 0) return not_a_number();
  if (magnitude == kInfinity) return 0;
  const int exponent = exponent_of(magnitude);
  const auto odd = static_cast<std::uint32_t>(exponent & 1);
  const std::uint32_t root = rsqrt_table()[odd << 23 | (magnitude & kMantissa)];
  return from_bits(root - (static_cast<std::uint32_t>((exponent - static_cast<int>(odd)) / 2) << 23));
}

float rsqrt_approx(float a) {
  if (!(std::fabs(a) < 0x1p-126f)) return rsqrt_approx_ftz(a);
  return canonical(rsqrt_approx_ftz(a * 0x1p24f) * 0x1p12f);
}

float tanh_approx(float a) {
  const std::uint32_t sign = bits_of(a) & kSign, magnitude = bits_of(a) & ~kSign;
  if (magnitude > kInfinity) return not_a_number();
  const int octave = exponent_of(magnitude) + 8;
  if (octave < 0) return a;
  if (octave >= static_cast<int>(std::size(kTanhBits))) return from_bits(sign | 0x3F80'0000);
  std::size_t begin = 0;
  for (int before = 0; before < octave; ++before) begin += std::size_t{1} << kTanhBits[before];
  return from_bits(sign | tanh_table()[begin + ((magnitude & kMantissa) >> (23 - kTanhBits[octave]))]);
}

float div_full(float a, float b) {
  const float scale = std::fabs(b) > 0x1p126f ? 0.25f : std::fabs(b) < 0x1p-126f ? 0x1p24f : 1.0f;
  return canonical((a * scale) * rcp_approx_ftz(b * scale));
}

float div_approx_ftz(float a, float b) { return canonical(flush_subnormal(flush_subnormal(a) * rcp_approx_ftz(b))); }

float cuda_expf(float a) {
  const float shifted = std::fma(a, 0x1.77313ap-8f, 0.5f);
  const float share = !(shifted > 0) ? 0.0f : shifted < 1 ? shifted : 1.0f;  // NaN becomes 0
  const double whole = std::floor(252.0 * static_cast<double>(share));       // log2(e^a) + 126, within 0 .. 252
  const float power = static_cast<float>(whole - 126);
  const float rest = std::fma(a, 0x1.4ae0cp-26f, std::fma(a, 0x1.715476p0f, -power));
  return canonical(ex2_approx_ftz(rest) * std::ldexp(1.0f, static_cast<int>(power)));
}

}  // namespace assay
