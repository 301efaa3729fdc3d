#include "reference/gemm/packed_operand.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "reference/support/simd.h"
#include "reference/types/error.h"

namespace assay::gemm {
namespace {

// A format as the decoders see it: sign, exponent field, mantissa field, and which codes are not finite.
enum class Specials { ieee, nan_only, none };  // infinity and NaN in the last exponent; NaN in the last code; neither

template <int kExponentBits, int kMantissaBits, Specials kSpecials>
struct Decoder {
  static constexpr std::int32_t kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kMagnitude = (1u << (kExponentBits + kMantissaBits)) - 1;
  static constexpr std::uint32_t kMantissa = (1u << kMantissaBits) - 1;
  static constexpr std::uint32_t kInfinity = kMagnitude & ~kMantissa;

  ASSAY_INLINE static bool special(std::uint32_t code) {
    const std::uint32_t magnitude = code & kMagnitude;
    if (kSpecials == Specials::ieee) return magnitude >= kInfinity;
    return kSpecials == Specials::nan_only && magnitude == kMagnitude;
  }
  ASSAY_INLINE static std::uint32_t sign(std::uint32_t code) { return (code >> (kExponentBits + kMantissaBits)) << 31; }
  // Exponent of the encoding: a subnormal keeps that of the smallest normal.
  ASSAY_INLINE static std::int32_t exponent(std::uint32_t code) {
    return std::max(static_cast<std::int32_t>((code & kMagnitude) >> kMantissaBits), 1) - kBias;
  }
  // The value: fields moved to their f32 places, then a power of two corrects the bias, which is exact.
  ASSAY_INLINE static float value(std::uint32_t code) {
    const float magnitude = std::bit_cast<float>((code & kMagnitude) << (23 - kMantissaBits));
    constexpr float kRebias = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - kBias) << 23);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude * kRebias) | sign(code));
  }
  // The same without its exponent, so in (-2, 2).
  ASSAY_INLINE static float significand(std::uint32_t code) {
    const std::uint32_t hidden = (code & kInfinity) != 0 ? kMantissa + 1 : 0;
    const float units = static_cast<float>(static_cast<std::int32_t>((code & kMantissa) | hidden));
    constexpr float kUnit = 1.0f / (1 << kMantissaBits);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(units * kUnit) | sign(code));
  }
  // A special code as the f32 it stands for.
  ASSAY_INLINE static float special_value(std::uint32_t code) {
    const bool infinity = kSpecials == Specials::ieee && (code & kMantissa) == 0;
    return std::bit_cast<float>(sign(code) | (infinity ? 0x7F80'0000u : 0x7FC0'0000u));
  }
};

using Bf16 = Decoder<8, 7, Specials::ieee>;
using F16 = Decoder<5, 10, Specials::ieee>;
using E5m2 = Decoder<5, 2, Specials::ieee>;
using E4m3 = Decoder<4, 3, Specials::nan_only>;
using E2m1 = Decoder<2, 1, Specials::none>;

// Returns whether every code is finite and every exponent but a zero's within +-kNarrowExponent.
template <class Form, class Code>
ASSAY_INLINE bool narrow_loop(const Code* codes, std::int64_t count, float* value, std::int8_t* exponent) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t code = codes[i];
    const bool zero = (code & Form::kMagnitude) == 0;
    value[i] = Form::value(code);
    exponent[i] = static_cast<std::int8_t>(zero ? kNarrowZero : Form::exponent(code));
  }
  // Magnitudes sort as their codes do, specials last. One less than 0 is the largest code: zeros do not count as small.
  Code largest = 0, smallest_less_one = static_cast<Code>(~0u);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<Code>(codes[i] & Form::kMagnitude);
    largest = std::max(largest, magnitude);
    smallest_less_one = std::min(smallest_less_one, static_cast<Code>(magnitude - 1));
  }
  if (largest == 0) return true;
  return !Form::special(largest) && Form::exponent(largest) <= kNarrowExponent &&
         Form::exponent(smallest_less_one + 1u) >= -kNarrowExponent;
}

// Returns whether a code is infinite or NaN.
template <class Form, class Code>
ASSAY_INLINE bool wide_loop(const Code* codes, std::int64_t count, float* significand, std::int32_t* exponent) {
  Code largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t code = codes[i];
    const float ordinary = Form::significand(code), otherwise = Form::special_value(code);
    const std::int32_t e = Form::exponent(code);
    const bool special = Form::special(code);
    const bool zero = (code & Form::kMagnitude) == 0;
    significand[i] = special ? otherwise : ordinary;
    exponent[i] = (zero | special) ? kWideZero : e;
  }
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<Code>(codes[i] & Form::kMagnitude));
  return Form::special(largest);
}

ASSAY_CLONES bool narrow_codes(Format type, const std::uint8_t* codes, std::int64_t count, float* value, std::int8_t* exponent) {
  if (type == Format::e4m3) return narrow_loop<E4m3>(codes, count, value, exponent);
  if (type == Format::e5m2) return narrow_loop<E5m2>(codes, count, value, exponent);
  return narrow_loop<E2m1>(codes, count, value, exponent);
}
ASSAY_CLONES bool narrow_codes(Format type, const std::uint16_t* codes, std::int64_t count, float* value, std::int8_t* exponent) {
  if (type == Format::bf16) return narrow_loop<Bf16>(codes, count, value, exponent);
  return narrow_loop<F16>(codes, count, value, exponent);
}
ASSAY_CLONES bool wide_codes(Format type, const std::uint8_t* codes, std::int64_t count, float* significand,
                             std::int32_t* exponent) {
  if (type == Format::e4m3) return wide_loop<E4m3>(codes, count, significand, exponent);
  if (type == Format::e5m2) return wide_loop<E5m2>(codes, count, significand, exponent);
  return wide_loop<E2m1>(codes, count, significand, exponent);
}
ASSAY_CLONES bool wide_codes(Format type, const std::uint16_t* codes, std::int64_t count, float* significand,
                             std::int32_t* exponent) {
  if (type == Format::bf16) return wide_loop<Bf16>(codes, count, significand, exponent);
  return wide_loop<F16>(codes, count, significand, exponent);
}
ASSAY_CLONES void repeat_bytes(const std::int8_t* bytes, std::int64_t count, std::uint32_t* words) {
  for (std::int64_t i = 0; i < count; ++i) words[i] = static_cast<std::uint8_t>(bytes[i]) * 0x0101'0101u;
}

// An FP8 code as the f16 or bf16 of its value.
std::uint16_t wide_code(Format from, std::uint32_t code, Format to) {
  const bool special = from == Format::e4m3 ? E4m3::special(code) : E5m2::special(code);
  const float value = !special               ? (from == Format::e4m3 ? E4m3::value(code) : E5m2::value(code))
                      : from == Format::e4m3 ? E4m3::special_value(code)
                                             : E5m2::special_value(code);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (to == Format::bf16) return static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFF'FFFF;
  if (special) return static_cast<std::uint16_t>(sign | (magnitude > 0x7F80'0000 ? 0x7E00 : 0x7C00));
  if (magnitude >= 0x3880'0000) return static_cast<std::uint16_t>(sign | ((magnitude >> 13) - (112u << 10)));  // from 2^-14
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::fabs(value) * 0x1p24f));            // units of 2^-24
}

// Slots of as many lines as fit 8 bytes, one store per slot.
static_assert(std::endian::native == std::endian::little);
template <class Code>
ASSAY_INLINE void transpose_lines(const Code* in, std::int64_t row_stride, std::int64_t k_stride, const int* offsets, int slots,
                                  int width, Code* out) {
  constexpr int kLines = 8 / sizeof(Code);
  for (int slot = 0; slot < slots; ++slot) {
    std::uint64_t word = 0;
    for (int line = 0; line < kLines; ++line) {
      const std::uint64_t code = in[line * row_stride + offsets[slot] * k_stride];
      word |= code << (8 * sizeof(Code) * static_cast<unsigned>(line));
    }
    std::memcpy(out + slot * width, &word, sizeof word);
  }
}

// Codes of `count` lines into slot order. Code 0 is +0 in every format.
template <class Code>
void gather_codes(const OperandView& view, std::int64_t first, int count, int width, const Chunk& chunk, Code* codes) {
  constexpr int kLinesAWord = 8 / sizeof(Code);
  const int products = chunk.rule->products;
  std::memset(codes, 0, sizeof(Code) * static_cast<std::size_t>(chunk.slots() * width));
  for (std::int64_t j = 0; j < chunk.step_count; ++j) {
    const Step& step = chunk.steps[j];
    Code* out = codes + j * products * width;
    int offsets[64];
    int present = 0;
    while (present < products && slot_offset(step.slots, present) < step.count) {
      offsets[present] = slot_offset(step.slots, present);
      ++present;
    }
    if (view.type == Format::e2m1) {
      for (int slot = 0; slot < present; ++slot) {
        for (int line = 0; line < count; ++line) {
          out[slot * width + line] = static_cast<Code>(view.element(first + line, step.k + offsets[slot]));
        }
      }
    } else if (view.row_stride == 1) {
      const Code* in = static_cast<const Code*>(view.data) + first;
      for (int slot = 0; slot < present; ++slot) {
        std::memcpy(out + slot * width, in + (step.k + offsets[slot]) * view.k_stride,
                    sizeof(Code) * static_cast<std::size_t>(count));
      }
    } else {
      const Code* in = static_cast<const Code*>(view.data) + first * view.row_stride + step.k * view.k_stride;
      int line = 0;
      for (; line + kLinesAWord <= count; line += kLinesAWord) {
        transpose_lines(in + line * view.row_stride, view.row_stride, view.k_stride, offsets, present, width, out + line);
      }
      for (; line < count; ++line) {
        for (int slot = 0; slot < present; ++slot)
          out[slot * width + line] = in[line * view.row_stride + offsets[slot] * view.k_stride];
      }
    }
  }
}

}  // namespace

void PackedOperand::pack(const OperandView& view, std::int64_t first, int count, int width, const Chunk& chunk, bool for_narrow) {
  type_ = chunk.rule->widen.value_or(view.type);
  width_ = width;
  chunk_ = chunk;
  narrow_ = for_narrow;
  wide_ = false;
  lines_ = PackedLines{};
  const std::int64_t elements = chunk.slots() * width;
  const bool half = type_ == Format::bf16 || type_ == Format::f16;
  if (chunk.rule->widen) {
    gather_codes(view, first, count, width, chunk, codes8_.take(static_cast<std::size_t>(elements)));
    widen_codes(view.type, elements);
  } else if (half) {
    gather_codes(view, first, count, width, chunk, codes16_.take(static_cast<std::size_t>(elements)));
  } else {
    gather_codes(view, first, count, width, chunk, codes8_.take(static_cast<std::size_t>(elements)));
  }
  pack_scales(view, first, count);
  if (chunk.rule->scaling == StepScaling::e4m3_per_16) {
    pack_fp4();
  } else if (for_narrow) {
    if (half) {
      decode_narrow(codes16_.data(), elements);
    } else {
      decode_narrow(codes8_.data(), elements);
    }
  } else {
    widen();
  }
}

// FP8 codes as f16 or bf16, which hold every value of theirs: by table.
void PackedOperand::widen_codes(Format from, std::int64_t count) {
  std::uint16_t table[256];
  for (std::uint32_t code = 0; code < 256; ++code) table[code] = wide_code(from, code, type_);
  const std::uint8_t* codes = codes8_.data();
  std::uint16_t* wide = codes16_.take(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) wide[i] = table[codes[i]];
}

template <class Code>
void PackedOperand::decode_narrow(const Code* codes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  lines_.value = value_.take(size);
  lines_.exponent_byte = exponent_byte_.take(size);
  const bool inside = narrow_codes(type_, codes, count, value_.data(), exponent_byte_.data());
  narrow_ = narrow_ && inside;
  if (width_ == kRowGroup) {
    lines_.exponent_word = exponent_word_.take(size);
    repeat_bytes(exponent_byte_.data(), count, exponent_word_.data());
  }
}

template <class Code>
void PackedOperand::decode_wide(const Code* codes, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  lines_.significand = significand_.take(size);
  lines_.exponent = exponent_.take(size);
  const bool special = wide_codes(type_, codes, count, significand_.data(), exponent_.data());
  lines_.special = lines_.special || special;
}

void PackedOperand::widen() {
  if (wide_) return;
  wide_ = true;
  const std::int64_t elements = chunk_.slots() * width_;
  if (type_ == Format::bf16 || type_ == Format::f16) {
    decode_wide(codes16_.data(), elements);
  } else {
    decode_wide(codes8_.data(), elements);
  }
  if (chunk_.rule->scaling != StepScaling::e8m0_per_32) return;
  // A NaN scale makes every product of its step NaN.
  const int products = chunk_.rule->products;
  for (std::int64_t at = 0; at < chunk_.step_count * width_; ++at) {
    if (scale_nan_.data()[at] == 0) continue;
    lines_.special = true;
    const std::int64_t step = at / width_;
    for (int slot = 0; slot < chunk_.steps[step].count; ++slot) {
      significand_.data()[(step * products + slot) * width_ + at % width_] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

void PackedOperand::pack_scales(const OperandView& view, std::int64_t first, int count) {
  const ChainRule& rule = *chunk_.rule;
  const std::int64_t steps = chunk_.step_count;
  const auto size = static_cast<std::size_t>(steps * width_);
  if (rule.scaling == StepScaling::e8m0_per_32) {
    std::int32_t* exponent = scale_exponent_.take(size);
    std::uint8_t* nan = scale_nan_.take(size);
    std::fill_n(exponent, size, 0);
    std::fill_n(nan, size, std::uint8_t{0});
    for (std::int64_t step = 0; step < steps; ++step) {
      for (int line = 0; line < count; ++line) {
        const std::uint8_t code = view.scale.code(first + line, chunk_.steps[step].k);
        const std::int64_t at = step * width_ + line;
        exponent[at] = code == 0xFF ? 0 : code - 127;
        nan[at] = code == 0xFF;
        if (std::abs(code - 127) > kNarrowScale) narrow_ = false;  // NaN's 0xFF among them
      }
    }
    lines_.scale_exponent = exponent;
  } else if (rule.scaling == StepScaling::e4m3_per_16) {
    float* significand = scale_.take(size * kFp4Groups);
    std::int32_t* exponent = scale_exponent_.take(size * kFp4Groups);
    std::fill_n(significand, size * kFp4Groups, 0.0f);
    std::fill_n(exponent, size * kFp4Groups, kWideZero);
    for (std::int64_t step = 0; step < steps; ++step) {
      const int groups = (chunk_.steps[step].count + kFp4Group - 1) / kFp4Group;
      for (int group = 0; group < std::min(groups, kFp4Groups); ++group) {
        for (int line = 0; line < count; ++line) {
          const std::uint8_t code = view.scale.code(first + line, chunk_.steps[step].k + group * kFp4Group) & 0x7F;  // unsigned
          const std::int64_t at = (step * kFp4Groups + group) * width_ + line;
          significand[at] = E4m3::special(code) ? std::numeric_limits<float>::quiet_NaN() : E4m3::significand(code);
          if (code != 0) exponent[at] = E4m3::exponent(code);
        }
      }
    }
    lines_.scale = significand;
    lines_.scale_exponent = exponent;
  } else if (rule.promotion != Promotion::none && rule.promotion != Promotion::add) {
    float* scale = scale_.take(size);
    std::fill_n(scale, size, 0.0f);
    for (std::int64_t step = 0; step < steps; ++step) {
      if (!chunk_.steps[step].ends_interval) continue;  // a promotion interval lies within one block of 128
      for (int line = 0; line < count; ++line) scale[step * width_ + line] = view.scale.value(first + line, chunk_.steps[step].k);
    }
    lines_.scale = scale;
    if (!rescales(rule.promotion)) return;
    float* next = next_scale_.take(size);
    std::fill_n(next, size, 0.0f);
    for (std::int64_t step = 0; step < steps; ++step) {
      if (chunk_.steps[step].next_k < 0) continue;
      for (int line = 0; line < count; ++line)
        next[step * width_ + line] = view.scale.value(first + line, chunk_.steps[step].next_k);
    }
    lines_.next_scale = next;
  }
}

// Elements as values, and which of them are not zero.
void PackedOperand::pack_fp4() {
  const std::int64_t elements = chunk_.slots() * width_;
  lines_.value = value_.take(static_cast<std::size_t>(elements));
  std::uint32_t* nonzero = nonzero_.take(static_cast<std::size_t>(elements / kFp4Group));
  lines_.nonzero = nonzero;
  const std::uint8_t* codes = codes8_.data();
  for (std::int64_t block = 0; block < elements / width_ / kFp4Group; ++block) {
    for (int line = 0; line < width_; ++line) {
      std::uint32_t mask = 0;
      for (int slot = 0; slot < kFp4Group; ++slot) {
        const std::int64_t at = (block * kFp4Group + slot) * width_ + line;
        value_.data()[at] = E2m1::value(codes[at]);
        mask |= static_cast<std::uint32_t>((codes[at] & E2m1::kMagnitude) != 0) << slot;
      }
      nonzero[block * width_ + line] = mask;
    }
  }
}

}  // namespace assay::gemm
