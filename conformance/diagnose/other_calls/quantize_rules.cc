#include "conformance/diagnose/other_calls/quantize_rules.h"

#include <bit>
#include <cmath>

#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/f16.h"

namespace assay::conformance::diagnosis {
namespace {

std::uint8_t encode(Format type, float value) {
  return type == Format::e4m3 ? scalar::encode_e4m3(value) : scalar::encode_e5m2(value);
}
float decode(Format type, unsigned code) {
  const auto byte = static_cast<std::uint8_t>(code);
  return type == Format::e4m3 ? scalar::decode_e4m3(byte) : scalar::decode_e5m2(byte);
}
float cut_to_bf16(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000u); }
float to_bf16(float x) { return scalar::decode_bf16(scalar::encode_bf16(x)); }

// ---- amax -----------------------------------------------------------------------------------------------------------

float amax_of(std::span<const float> block) {
  float amax = 0;
  for (const float x : block) amax = std::fabs(x) > amax ? std::fabs(x) : amax;
  return amax;
}
float signed_amax(std::span<const float> block) {
  float amax = 0;
  for (const float x : block) amax = x > amax ? x : amax;
  return amax;
}
float amax_with_nan(std::span<const float> block) {
  for (const float x : block) {
    if (std::isnan(x)) return x;
  }
  return amax_of(block);
}
float finite_amax(std::span<const float> block) {
  float amax = 0;
  for (const float x : block) amax = std::isfinite(x) && std::fabs(x) > amax ? std::fabs(x) : amax;
  return amax;
}
template <std::size_t count>
float amax_of_first(std::span<const float> block) {
  return amax_of(block.first(std::min(count, block.size())));
}
float amax_but_last(std::span<const float> block) { return amax_of(block.first(block.size() - 1)); }
float amax_but_first(std::span<const float> block) { return amax_of(block.subspan(1)); }
float amax_cut_to_bf16(std::span<const float> block) { return cut_to_bf16(amax_of(block)); }
float amax_to_bf16(std::span<const float> block) { return to_bf16(amax_of(block)); }

// ---- Scales ---------------------------------------------------------------------------------------------------------

BlockScale stored(float scale) { return {scale, std::bit_cast<std::uint32_t>(1 / scale)}; }
BlockScale stored(std::uint8_t code) { return {scalar::e8m0_quantize_multiplier(code), code}; }

// The rule of per-tensor and block recipes with its division and its rounding to a power of two given.
template <class Divide, class Round>
float scale_by(const QuantizeCall& call, float amax, Divide divide, Round round) {
  amax = std::max(amax, call.eps);
  if (amax == 0 || !std::isfinite(amax)) return 1;
  const bool blocks = call.recipe == Recipe::block_1x128 || call.recipe == Recipe::block_128x128;
  float scale = divide(max_finite(call.output), amax);
  if (std::isinf(scale)) scale = max_finite(blocks ? call.x_type : Format::f32);
  return call.pow2 ? round(scale) : scale;
}
float quotient(float max, float amax) { return max / amax; }
float floor_of(float scale) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xff800000u); }
float ceiling_of(float scale) { return floor_of(scale) == scale ? scale : floor_of(scale) * 2; }
float nearest_power(float scale) { return scale / floor_of(scale) >= 1.5f ? floor_of(scale) * 2 : floor_of(scale); }

BlockScale by_reciprocal(const QuantizeCall& call, float amax) {
  return stored(scale_by(
      call, amax, [](float max, float of) { return 1 / of * max; }, floor_of));
}
BlockScale rounded_up(const QuantizeCall& call, float amax) { return stored(scale_by(call, amax, quotient, ceiling_of)); }
BlockScale rounded_near(const QuantizeCall& call, float amax) { return stored(scale_by(call, amax, quotient, nearest_power)); }
template <int aim>
BlockScale aiming_at(const QuantizeCall& call, float amax) {
  return stored(scale_by(
      call, amax, [](float, float of) { return aim / of; }, floor_of));
}
BlockScale inverse_from_amax(const QuantizeCall& call, float amax) {
  BlockScale made = right_scale(call, amax);
  const float raised = std::max(amax, call.eps);
  if (raised > 0 && std::isfinite(raised)) made.stored = std::bit_cast<std::uint32_t>(raised / max_finite(call.output));
  return made;
}
BlockScale stores_scale(const QuantizeCall& call, float amax) {
  BlockScale made = right_scale(call, amax);
  made.stored = std::bit_cast<std::uint32_t>(made.multiplier);
  return made;
}
BlockScale of_zero_is_zero(const QuantizeCall& call, float amax) {
  return amax == 0 && call.eps == 0 ? BlockScale{0, 0} : right_scale(call, amax);
}

int exponent_of(float x) { return x == 0 || !std::isfinite(x) ? -127 : std::ilogb(x); }
std::uint8_t e8m0(int exponent) { return static_cast<std::uint8_t>(std::min(std::max(exponent + 127, 0), 254)); }
float mx_ratio(const QuantizeCall& call, float amax) { return amax / max_finite(call.output); }
BlockScale mx_rounded_down(const QuantizeCall& call, float amax) {
  return std::isnan(amax) ? right_scale(call, amax) : stored(e8m0(exponent_of(mx_ratio(call, amax))));
}
BlockScale mx_of_ocp(const QuantizeCall& call, float amax) {
  return std::isnan(amax) ? right_scale(call, amax) : stored(e8m0(exponent_of(amax) - exponent_of(max_finite(call.output))));
}
BlockScale mx_rounded_near(const QuantizeCall& call, float amax) {
  if (std::isnan(amax) || amax == 0) return right_scale(call, amax);
  return stored(e8m0(static_cast<int>(std::nearbyint(std::log2(static_cast<double>(mx_ratio(call, amax)))))));
}
BlockScale mx_one_up(const QuantizeCall& call, float amax) {
  const std::uint32_t code = right_scale(call, amax).stored;
  return stored(static_cast<std::uint8_t>(code >= 254 ? code : code + 1));
}
BlockScale mx_by_division(const QuantizeCall& call, float amax) { return stored(scalar::encode_e8m0(mx_ratio(call, amax))); }

// ---- Elements -------------------------------------------------------------------------------------------------------

float divided(float x, const BlockScale& scale) { return x / (1 / scale.multiplier); }
float by_inverse_of_stored(float x, const BlockScale& scale) { return x * (1 / (1 / scale.multiplier)); }
float to_f16(float x) { return scalar::decode_f16(scalar::encode_f16(x)); }
float by_stored(float x, const BlockScale& scale) { return x * (1 / scale.multiplier); }
float without_sign(float x, const BlockScale& scale) { return std::fabs(x * scale.multiplier); }

std::uint8_t toward_zero(Format output, float product) {
  const std::uint8_t code = encode(output, product);
  return std::isfinite(product) && std::fabs(decode(output, code)) > std::fabs(product) ? static_cast<std::uint8_t>(code - 1)
                                                                                        : code;
}
std::uint8_t ties_away(Format output, float product) {
  const std::uint8_t low = toward_zero(output, product);
  const double below = decode(output, low), above = decode(output, low + 1u), exact = product;
  if (!std::isfinite(product) || !std::isfinite(above) || std::fabs(exact) > max_finite(output)) return encode(output, product);
  return std::fabs(exact - below) >= std::fabs(above - exact) ? static_cast<std::uint8_t>(low + 1) : low;
}
std::uint8_t away_from_zero(Format output, float product) {
  const std::uint8_t low = toward_zero(output, product);
  const bool exact = decode(output, low) == product || std::fabs(product) >= max_finite(output) || !std::isfinite(product);
  return exact ? encode(output, product) : static_cast<std::uint8_t>(low + 1);
}
std::uint8_t not_saturated(Format output, float product) {
  const std::uint8_t code = encode(output, product);
  if (!(std::fabs(product) > max_finite(output))) return code;
  return static_cast<std::uint8_t>((code & 0x80) | (output == Format::e4m3 ? 0x7f : 0x7c));
}
std::uint8_t nan_saturated(Format output, float product) {
  return std::isnan(product) ? encode(output, max_finite(output)) : encode(output, product);
}
std::uint8_t nan_as_zero(Format output, float product) { return std::isnan(product) ? 0 : encode(output, product); }
std::uint8_t no_subnormals(Format output, float product) {
  const std::uint8_t code = encode(output, product);
  return (code & 0x7f) < (output == Format::e4m3 ? 0x08 : 0x04) ? code & 0x80 : code;
}

bool always(const QuantizeCall&) { return true; }
bool has_amax(const QuantizeCall& call) { return call.recipe != Recipe::tensor_delayed; }
bool mx(const QuantizeCall& call) { return call.recipe == Recipe::mxfp8; }
bool f32_scales(const QuantizeCall& call) { return call.recipe != Recipe::mxfp8; }
bool makes_f32_scales(const QuantizeCall& call) { return has_amax(call) && f32_scales(call); }
bool pow2(const QuantizeCall& call) { return makes_f32_scales(call) && call.pow2; }
bool f32_input(const QuantizeCall& call) { return has_amax(call) && call.x_type == Format::f32; }

constexpr NamedRules kQuantizeRules[] = {
    {"with codes rounded toward zero", always, {.code = toward_zero}},
    {"with ties of codes rounded away from zero", always, {.code = ties_away}},
    {"with codes rounded away from zero", always, {.code = away_from_zero}},
    {"with overflow not saturated", always, {.code = not_saturated}},
    {"with NaN stored as the largest finite code", always, {.code = nan_saturated}},
    {"with NaN stored as 0", always, {.code = nan_as_zero}},
    {"with subnormal codes stored as 0", always, {.code = no_subnormals}},
    {"with x divided by scale_inv, not multiplied by the scale", f32_scales, {.product = divided}},
    {"with x multiplied by 1 / scale_inv, not by the scale", f32_scales, {.product = by_inverse_of_stored}},
    {"with x multiplied by scale_inv in place of the scale", always, {.product = by_stored}},
    {"with the scaled x cut to bf16 before its code", always, {.rounded = cut_to_bf16}},
    {"with the scaled x rounded to bf16 before its code", always, {.rounded = to_bf16}},
    {"with the scaled x rounded to f16 before its code", always, {.rounded = to_f16}},
    {"without signs of codes", always, {.product = without_sign}},
    {"with the scale as MAX times 1 / amax, not MAX / amax", makes_f32_scales, {.scale = by_reciprocal}},
    {"with scale_inv as amax / MAX, not 1 / scale", makes_f32_scales, {.scale = inverse_from_amax}},
    {"with the scale stored in place of scale_inv", makes_f32_scales, {.scale = stores_scale}},
    {"with scales rounded up to powers of two", pow2, {.scale = rounded_up}},
    {"with scales rounded to the nearest power of two", pow2, {.scale = rounded_near}},
    {"with scales that aim at 240", makes_f32_scales, {.scale = aiming_at<240>}},
    {"with scales that aim at 256", makes_f32_scales, {.scale = aiming_at<256>}},
    {"with scales that aim at 448", makes_f32_scales, {.scale = aiming_at<448>}},
    {"with scales that aim at 57344", makes_f32_scales, {.scale = aiming_at<57344>}},
    {"with a scale of 0 where amax is 0", makes_f32_scales, {.scale = of_zero_is_zero}},
    {"with scales rounded down, not up", mx, {.scale = mx_rounded_down}},
    {"with scales by floor(log2(amax)) - emax, as OCP has them", mx, {.scale = mx_of_ocp}},
    {"with scales rounded to the nearest power of two", mx, {.scale = mx_rounded_near}},
    {"with scales one power of two too large", mx, {.scale = mx_one_up}},
    {"with amax divided by MAX, not multiplied by its reciprocal", mx, {.scale = mx_by_division}},
    {"with amax of positive values alone", has_amax, {.amax = signed_amax}},
    {"with NaN kept by amax", has_amax, {.amax = amax_with_nan}},
    {"with infinity passed over by amax", has_amax, {.amax = finite_amax}},
    {"with amax cut to bf16", f32_input, {.amax = amax_cut_to_bf16}},
    {"with amax rounded to bf16", f32_input, {.amax = amax_to_bf16}},
    {"with the last element of every block passed over by amax", has_amax, {.amax = amax_but_last}},
    {"with the first element of every block passed over by amax", has_amax, {.amax = amax_but_first}},
    {"with amax of the first 16 elements of every block", has_amax, {.amax = amax_of_first<16>}},
    {"with amax of the first 32 elements of every block", has_amax, {.amax = amax_of_first<32>}},
    {"with amax of the first 64 elements of every block", has_amax, {.amax = amax_of_first<64>}},
};

}  // namespace

std::span<const NamedRules> quantize_rules() { return kQuantizeRules; }

BlockScale right_scale(const QuantizeCall& call, float amax) {
  if (call.recipe != Recipe::mxfp8) return stored(scale_by(call, amax, quotient, floor_of));
  return stored(scalar::encode_e8m0(amax * std::bit_cast<float>(call.output == Format::e4m3 ? 0x3b12'4925u : 0x3792'4925u)));
}

}  // namespace assay::conformance::diagnosis
