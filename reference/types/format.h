#pragma once
// The number formats: name, width and range of each (spec formats-1.1).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

// Storage formats. Values are stable: they are also the dtype codes of conformance/backend.h.
enum class Format : std::uint32_t {
  f32 = 0,
  bf16 = 1,
  f16 = 2,
  e4m3 = 3,       // OCP FP8: no infinity, NaN is S.1111.111, largest 448
  e5m2 = 4,       // OCP FP8: IEEE-like, largest finite 57344
  e4m3_fnuz = 5,  // bias 8, no infinity, no -0, NaN is 0x80, largest 240
  e5m2_fnuz = 6,  // bias 16, no infinity, no -0, NaN is 0x80, largest 57344
  e8m0 = 7,       // scale exponent: 2^(code-127), 0xFF is NaN
  e2m1 = 8,       // OCP FP4: two codes per byte, lower column in the low nibble
  i32 = 9,
  i64 = 10,
  e3m2 = 11,  // OCP FP6: four codes in three bytes, lower column in the lower bits
  e2m3 = 12,  // OCP FP6, the same
};

// Bits of one element in storage: 4 for e2m1, 6 for e3m2 and e2m3, else 8, 16, 32 or 64.
int bits_of(Format format);

// Bytes that `elements` take: two e2m1 codes share a byte and four FP6 codes share three; the last byte may be used in part.
inline std::int64_t bytes_of(Format format, std::int64_t elements) { return (elements * bits_of(format) + 7) / 8; }

// The name used in fixtures and case lines: "f32", "bf16", "f16", "e4m3", ...
std::string_view name_of(Format format);

// The format with this name, or nothing.
std::optional<Format> format_named(std::string_view name);

// Largest finite value as f32: 448 for e4m3, 57344 for e5m2, 0x1.FEp127 for bf16, ... Errors: i32, i64 and e8m0.
float max_finite(Format format);

}  // namespace assay
