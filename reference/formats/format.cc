#include "reference/formats/format.h"

#include <string>

#include "reference/support/error.h"

namespace assay {
namespace {

struct Facts {
  Format format;
  std::string_view name;
  int bits;
  float max_finite;  // 0 where the question has no answer
};

constexpr Facts kFacts[] = {
    {Format::f32, "f32", 32, 0x1.fffffep127f}, {Format::bf16, "bf16", 16, 0x1.fep127f},
    {Format::f16, "f16", 16, 65504.0f},        {Format::e4m3, "e4m3", 8, 448.0f},
    {Format::e5m2, "e5m2", 8, 57344.0f},       {Format::e4m3_fnuz, "e4m3_fnuz", 8, 240.0f},
    {Format::e5m2_fnuz, "e5m2_fnuz", 8, 57344.0f}, {Format::e8m0, "e8m0", 8, 0},
    {Format::e2m1, "e2m1", 4, 6.0f},           {Format::i32, "i32", 32, 0},
    {Format::i64, "i64", 64, 0},
};

const Facts& facts(Format format) {
  const auto index = static_cast<std::uint32_t>(format);
  require(index < std::size(kFacts), "format", index, "one of the formats of reference/formats/format.h");
  return kFacts[index];
}

}  // namespace

int bits_of(Format format) { return facts(format).bits; }

std::string_view name_of(Format format) { return facts(format).name; }

std::optional<Format> format_named(std::string_view name) {
  for (const Facts& each : kFacts) {
    if (each.name == name) return each.format;
  }
  return std::nullopt;
}

float max_finite(Format format) {
  const Facts& row = facts(format);
  require(row.max_finite > 0, "format", row.name, "a floating-point format with a largest finite value");
  return row.max_finite;
}

}  // namespace assay
