#pragma once
// When two outputs count as equal: by bits, but for what the fixture schema exempts.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "reference/formats/format.h"

namespace assay::conformance {

// NaN of a 32-bit or 16-bit floating format, as right-aligned bits. Other formats have no NaN that may differ in payload.
inline bool is_payload_nan(Format type, std::uint32_t bits) {
  switch (type) {
    case Format::f32: return (bits & 0x7fff'ffff) > 0x7f80'0000;
    case Format::bf16: return (bits & 0x7fff) > 0x7f80;
    case Format::f16: return (bits & 0x7fff) > 0x7c00;
    default: return false;
  }
}

// One stored element (for e2m1 one byte) of each side. `zero_sign_free`: the codes of +0 and -0 are one.
inline bool same_element(Format type, std::uint64_t want, std::uint64_t got, bool zero_sign_free) {
  if (want == got) return true;
  if (is_payload_nan(type, static_cast<std::uint32_t>(want)) && is_payload_nan(type, static_cast<std::uint32_t>(got))) return true;
  if (!zero_sign_free) return false;
  if (type == Format::e2m1) {
    const auto plain = [](std::uint64_t byte) { return ((byte & 0x07) == 0 ? byte & 0xf0 : byte); };
    const auto both = [&](std::uint64_t byte) { return (plain(byte) & 0x70) == 0 ? plain(byte) & 0x0f : plain(byte); };
    return both(want) == both(got);
  }
  return (type == Format::e4m3 || type == Format::e5m2) && (want & 0x7f) == 0 && (got & 0x7f) == 0;
}

// Bytes of one stored element.
inline std::size_t stored_width(Format type) { return type == Format::e2m1 ? 1 : static_cast<std::size_t>(bits_of(type) / 8); }

inline std::uint64_t stored_element(std::span<const std::byte> bytes, std::size_t index, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + index * width, width);
  return value;
}

// Whole buffers of the same size.
inline bool same(Format type, std::span<const std::byte> want, std::span<const std::byte> got, bool zero_sign_free) {
  if (want.size() != got.size()) return false;
  if (want.empty() || std::memcmp(want.data(), got.data(), want.size()) == 0) return true;
  const std::size_t width = stored_width(type);
  for (std::size_t i = 0; i < want.size() / width; ++i) {
    if (!same_element(type, stored_element(want, i, width), stored_element(got, i, width), zero_sign_free)) return false;
  }
  return true;
}

}  // namespace assay::conformance
