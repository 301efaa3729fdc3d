#pragma once
// bf16 as its 16 bits.

#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t code;
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.code; }

// To nearest even: what the rest of the f32 is worth beside half a unit decides.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  if (std::isnan(value)) return {0x7FFF};
  const unsigned bits = __float_as_uint(value), kept = bits >> 16, rest = bits & 0xFFFFu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && kept % 2 == 1);
  return {static_cast<std::uint16_t>(kept + (up ? 1 : 0))};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
