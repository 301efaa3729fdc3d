#include "reference/formats/encode.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// One loop per format, all in one function, so that the loader picks the instruction set once for all of them.

ASSAY_CLONES void encode_bytes(Format format, const float* __restrict values, std::size_t count, std::uint8_t* __restrict codes) {
  switch (format) {
    case Format::e4m3:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e4m3(values[i]);
      return;
    case Format::e5m2:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e5m2(values[i]);
      return;
    case Format::e4m3_fnuz:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e4m3_fnuz(values[i]);
      return;
    case Format::e5m2_fnuz:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e5m2_fnuz(values[i]);
      return;
    case Format::e8m0:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e8m0(values[i]);
      return;
    case Format::e3m2:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e3m2(values[i]);
      return;
    case Format::e2m3:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e2m3(values[i]);
      return;
    default:  // e2m1: the caller has checked the format
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e2m1(values[i]);
      return;
  }
}

ASSAY_CLONES void encode_scaled_bytes(Format format, const float* __restrict values, float scale, std::size_t count,
                                      std::uint8_t* __restrict codes) {
  switch (format) {
    case Format::e4m3:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e4m3(values[i] * scale);
      return;
    case Format::e5m2:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e5m2(values[i] * scale);
      return;
    case Format::e4m3_fnuz:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e4m3_fnuz(values[i] * scale);
      return;
    case Format::e5m2_fnuz:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e5m2_fnuz(values[i] * scale);
      return;
    case Format::e8m0:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e8m0(values[i] * scale);
      return;
    case Format::e3m2:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e3m2(values[i] * scale);
      return;
    case Format::e2m3:
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e2m3(values[i] * scale);
      return;
    default:  // e2m1
      for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_e2m1(values[i] * scale);
      return;
  }
}

ASSAY_CLONES void decode_bytes(Format format, const std::uint8_t* __restrict codes, std::size_t count, float* __restrict values) {
  switch (format) {
    case Format::e4m3:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e4m3(codes[i]);
      return;
    case Format::e5m2:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e5m2(codes[i]);
      return;
    case Format::e4m3_fnuz:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e4m3_fnuz(codes[i]);
      return;
    case Format::e5m2_fnuz:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e5m2_fnuz(codes[i]);
      return;
    case Format::e8m0:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e8m0(codes[i]);
      return;
    case Format::e3m2:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e3m2(codes[i]);
      return;
    case Format::e2m3:
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e2m3(codes[i]);
      return;
    default:  // e2m1
      for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_e2m1(codes[i]);
      return;
  }
}

ASSAY_CLONES void encode_words(Format format, const float* __restrict values, std::size_t count,
                               std::uint16_t* __restrict codes) {
  if (format == Format::bf16) {
    for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_bf16(values[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) codes[i] = fast::encode_f16(values[i]);
  }
}

ASSAY_CLONES void decode_words(Format format, const std::uint16_t* __restrict codes, std::size_t count,
                               float* __restrict values) {
  if (format == Format::bf16) {
    for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_bf16(codes[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) values[i] = fast::decode_f16(codes[i]);
  }
}

ASSAY_CLONES void widen_words(Format type, const std::uint16_t* __restrict source, std::size_t count, float* __restrict values) {
  if (type == Format::bf16) {
    for (std::size_t i = 0; i < count; ++i) values[i] = fast::widen_bf16(source[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) values[i] = fast::widen_f16(source[i]);
  }
}

ASSAY_CLONES float largest_magnitude(const float* values, std::size_t count) {
  std::int32_t largest = fast::kZeroRank;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, fast::rank_of(values[i]));
  return fast::magnitude_of_rank(largest);
}

ASSAY_CLONES void pack_pairs(const std::uint8_t* __restrict codes, std::size_t pairs, std::uint8_t* __restrict bytes) {
  for (std::size_t i = 0; i < pairs; ++i) {
    bytes[i] = static_cast<std::uint8_t>((codes[2 * i] & 0xF) | (codes[2 * i + 1] << 4));
  }
}

ASSAY_CLONES void unpack_pairs(const std::uint8_t* __restrict bytes, std::size_t pairs, std::uint8_t* __restrict codes) {
  for (std::size_t i = 0; i < pairs; ++i) {
    codes[2 * i] = bytes[i] & 0xF;
    codes[2 * i + 1] = bytes[i] >> 4;
  }
}

void require_byte_format(Format format) {
  require(bits_of(format) <= 8, "format", name_of(format),
          "e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, e8m0, e3m2, e2m3 or e2m1, whose codes fit a byte");
}

// Three bytes are a word of 24 bits, its lowest byte first.
ASSAY_CLONES void pack_fours(const std::uint8_t* __restrict codes, std::size_t fours, std::uint8_t* __restrict bytes) {
  for (std::size_t i = 0; i < fours; ++i) {
    const std::uint32_t word = (codes[4 * i] & 0x3Fu) | (codes[4 * i + 1] & 0x3Fu) << 6 | (codes[4 * i + 2] & 0x3Fu) << 12 |
                               (codes[4 * i + 3] & 0x3Fu) << 18;
    bytes[3 * i] = static_cast<std::uint8_t>(word);
    bytes[3 * i + 1] = static_cast<std::uint8_t>(word >> 8);
    bytes[3 * i + 2] = static_cast<std::uint8_t>(word >> 16);
  }
}

ASSAY_CLONES void unpack_fours(const std::uint8_t* __restrict bytes, std::size_t fours, std::uint8_t* __restrict codes) {
  for (std::size_t i = 0; i < fours; ++i) {
    const std::uint32_t word = bytes[3 * i] | std::uint32_t{bytes[3 * i + 1]} << 8 | std::uint32_t{bytes[3 * i + 2]} << 16;
    for (std::size_t k = 0; k < 4; ++k) codes[4 * i + k] = word >> (6 * k) & 0x3F;
  }
}

void require_word_format(Format format) {
  require(format == Format::bf16 || format == Format::f16, "format", name_of(format), "bf16 or f16, whose codes have 16 bits");
}

void require_room(std::string_view argument, std::size_t size, std::size_t elements) {
  if (size >= elements) return;  // the message is made only if it is needed: rows of a few elements come here
  throw InvalidArgument(argument, std::to_string(size), "at least " + std::to_string(elements) + " elements");
}

}  // namespace

void encode(Format format, std::span<const float> values, std::span<std::uint8_t> codes) {
  require_byte_format(format);
  require_room("codes.size()", codes.size(), values.size());
  encode_bytes(format, values.data(), values.size(), codes.data());
}

void encode(Format format, std::span<const float> values, std::span<std::uint16_t> codes) {
  require_word_format(format);
  require_room("codes.size()", codes.size(), values.size());
  encode_words(format, values.data(), values.size(), codes.data());
}

void decode(Format format, std::span<const std::uint8_t> codes, std::span<float> values) {
  require_byte_format(format);
  require_room("values.size()", values.size(), codes.size());
  decode_bytes(format, codes.data(), codes.size(), values.data());
}

void decode(Format format, std::span<const std::uint16_t> codes, std::span<float> values) {
  require_word_format(format);
  require_room("values.size()", values.size(), codes.size());
  decode_words(format, codes.data(), codes.size(), values.data());
}

void encode_scaled(Format format, std::span<const float> values, float scale, std::span<std::uint8_t> codes) {
  require_byte_format(format);
  require_room("codes.size()", codes.size(), values.size());
  encode_scaled_bytes(format, values.data(), scale, values.size(), codes.data());
}

float amax(std::span<const float> values) { return largest_magnitude(values.data(), values.size()); }

void widen(Format type, const void* source, std::span<float> values) {
  require(type == Format::bf16 || type == Format::f16 || type == Format::f32, "type", name_of(type), "bf16, f16 or f32");
  if (values.empty()) return;
  if (source == nullptr)
    throw InvalidArgument("source", show(source), "a pointer to " + std::to_string(values.size()) + " elements");
  const auto address = reinterpret_cast<std::uintptr_t>(source);
  const auto size = static_cast<std::uintptr_t>(bits_of(type) / 8);
  if (address % size != 0)
    throw InvalidArgument("source", show(address), "an address that is a multiple of " + std::to_string(size));
  if (type == Format::f32) {
    std::memcpy(values.data(), source, values.size_bytes());  // not a copy of floats: every NaN keeps its bits
  } else {
    widen_words(type, static_cast<const std::uint16_t*>(source), values.size(), values.data());
  }
}

void pack_e2m1(std::span<const std::uint8_t> codes, std::span<std::uint8_t> bytes) {
  const std::size_t pairs = codes.size() / 2, odd = codes.size() % 2;
  require_room("bytes.size()", bytes.size(), pairs + odd);
  pack_pairs(codes.data(), pairs, bytes.data());
  if (odd != 0) bytes[pairs] = codes.back() & 0xF;
}

void unpack_e2m1(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> codes) {
  const std::size_t pairs = codes.size() / 2, odd = codes.size() % 2;
  require_room("bytes.size()", bytes.size(), pairs + odd);
  unpack_pairs(bytes.data(), pairs, codes.data());
  if (odd != 0) codes.back() = bytes[pairs] & 0xF;
}

void pack_fp6(std::span<const std::uint8_t> codes, std::span<std::uint8_t> bytes) {
  const std::size_t fours = codes.size() / 4, rest = codes.size() % 4, last = rest == 0 ? 0 : (rest * 6 + 7) / 8;
  require_room("bytes.size()", bytes.size(), 3 * fours + last);
  pack_fours(codes.data(), fours, bytes.data());
  std::uint8_t four[4] = {}, three[3];
  std::copy_n(codes.data() + 4 * fours, rest, four);
  pack_fours(four, 1, three);
  std::copy_n(three, last, bytes.data() + 3 * fours);
}

void unpack_fp6(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> codes) {
  const std::size_t fours = codes.size() / 4, rest = codes.size() % 4, last = rest == 0 ? 0 : (rest * 6 + 7) / 8;
  require_room("bytes.size()", bytes.size(), 3 * fours + last);
  unpack_fours(bytes.data(), fours, codes.data());
  std::uint8_t three[3] = {}, four[4];
  std::copy_n(bytes.data() + 3 * fours, last, three);
  unpack_fours(three, 1, four);
  std::copy_n(four, rest, codes.data() + 4 * fours);
}

}  // namespace assay
