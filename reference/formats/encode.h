#pragma once
// Whole arrays at a time: layer (b) of every conversion. The formats themselves are in e4m3.h, e5m2.h, ... beside this;
// each element here equals theirs bit for bit.
//
// Sources and destinations must not overlap. Every call checks its arguments before it writes anything, and writes
// nothing past the requested elements. Rounding is to nearest even, as long as the thread's floating-point environment
// is the default one.

#include <cstdint>
#include <span>

#include "reference/types/format.h"

namespace assay {

// Nearest value of `format`, ties to even, saturating; NaN as the format says. One code per element, right-aligned:
// formats of 8 bits and fewer in bytes (e2m1, e3m2 and e2m3 too: one code per byte, unpacked), bf16 and f16 in 16 bits. Vectorised, not threaded.
// Errors: a format of another width; `codes` shorter than `values`.
void encode(Format format, std::span<const float> values, std::span<std::uint8_t> codes);
void encode(Format format, std::span<const float> values, std::span<std::uint16_t> codes);

// The exact value of each code. NaN codes give the quiet NaN 0x7FC00000 with the code's sign where the format has one
// (FNUZ and e8m0 have none). Of e2m1 codes only the low nibble is read, of
// e3m2 and e2m3 codes the low six bits.
// Errors: a format of another width; `values` shorter than `codes`.
void decode(Format format, std::span<const std::uint8_t> codes, std::span<float> values);
void decode(Format format, std::span<const std::uint16_t> codes, std::span<float> values);

// code[i] = format(values[i] * scale): the cast of every FP8 recipe. The product is rounded to f32 first.
// Errors: as `encode` to bytes.
void encode_scaled(Format format, std::span<const float> values, float scale, std::span<std::uint8_t> codes);

// Largest magnitude, NaN passed over, 0 for an empty or all-NaN span; infinity counts.
float amax(std::span<const float> values);

// Widens bf16, f16 or f32 storage to f32 exactly (NaN payloads are kept where they fit). `type` is the type of `source`.
// A NaN is copied bit for bit, never made quiet. Errors: another type; `source` null or misaligned for `type`.
void widen(Format type, const void* source, std::span<float> values);

// Two e2m1 codes per byte, lower index in the low nibble; an odd last code has the high nibble 0. Packing reads the low
// nibble of each code. The number of elements is codes.size() both ways. Errors: fewer bytes than half of that, rounded up.
void pack_e2m1(std::span<const std::uint8_t> codes, std::span<std::uint8_t> bytes);
void unpack_e2m1(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> codes);

// Four e3m2 or e2m3 codes in three bytes (spec layouts-1.4); bits past the last code are 0. Packing reads the low six bits of each
// code. The number of elements is codes.size() both ways. Errors: fewer bytes than bytes_of(e3m2, codes.size()).
void pack_fp6(std::span<const std::uint8_t> codes, std::span<std::uint8_t> bytes);
void unpack_fp6(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> codes);

}  // namespace assay
