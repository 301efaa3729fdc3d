#include "reference/types/format.h"

#include <string>

#include "reference/types/error.h"

namespace assay {
namespace {

struct FormatTraits {
  Format format;
  std::string_view name;
  int bits;
  float max_finite;  // 0: not a floating-point format, or a scale without mantissa
};

constexpr FormatTraits kTraits[] = {
    {Format::f32, "f32", 32, 0x1.fffffep127f},
    {Format::bf16, "bf16", 16, 0x1.fep127f},
    {Format::f16, "f16", 16, 65504.0f},
    {Format::e4m3, "e4m3", 8, 448.0f},
    {Format::e5m2, "e5m2", 8, 57344.0f},
    {Format::e4m3_fnuz, "e4m3_fnuz", 8, 240.0f},
    {Format::e5m2_fnuz, "e5m2_fnuz", 8, 57344.0f},
    {Format::e8m0, "e8m0", 8, 0},
    {Format::e2m1, "e2m1", 4, 6.0f},
    {Format::i32, "i32", 32, 0},
    {Format::i64, "i64", 64, 0},
    {Format::e3m2, "e3m2", 6, 28.0f},
    {Format::e2m3, "e2m3", 6, 7.5f},
};

const FormatTraits& traits_of(Format format) {
  const auto index = static_cast<std::uint32_t>(format);
  require(index < std::size(kTraits), "format", index, "one of the formats of reference/types/format.h");
  return kTraits[index];
}

}  // namespace

int bits_of(Format format) { return traits_of(format).bits; }

std::string_view name_of(Format format) { return traits_of(format).name; }

std::optional<Format> format_named(std::string_view name) {
  for (const FormatTraits& each : kTraits) {
    if (each.name == name) return each.format;
  }
  return std::nullopt;
}

float max_finite(Format format) {
  const FormatTraits& row = traits_of(format);
  require(row.max_finite > 0, "format", row.name, "a floating-point format with a largest finite value");
  return row.max_finite;
}

}  // namespace assay
