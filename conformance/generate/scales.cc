#include "conformance/generate/scales.h"

#include <span>
#include <utility>

#include "conformance/generate/compose.h"
#include "conformance/generate/work_limit.h"
#include "conformance/support/counter_random.h"
#include "reference/layout/swizzle.h"
#include "reference/types/error.h"

namespace assay::conformance::inputs {
namespace {

constexpr std::uint32_t kScalePoison = 0x7FC0'DEAD;

// Codes of ScaleKind::specials in cycles of eight. E8M0 has only a NaN; E4M3 has no infinity, and a sign that products do
// not read.
std::uint32_t special_code(Format type, std::int64_t turn, std::uint32_t plain) {
  const std::uint32_t e8m0[] = {plain, 0xFF, plain, 0xFE, plain, 0x00, plain, 0x01};
  const std::uint32_t e4m3[] = {plain, 0x7F, plain | 0x80, 0xFF, plain, 0x80, 0x81, 0x00};
  const std::uint32_t f32[] = {plain, 0x7F80'0000, 0x8000'0000, 0x7FC0'0000, plain | 0x8000'0000, 0xFF80'0000, 0x0000'0001, 0};
  return type == Format::e8m0 ? e8m0[turn] : type == Format::e4m3 ? e4m3[turn] : f32[turn];
}

// (T * 2^shift +- 1) / 3, of 24 bits, where T is odd and has `bits` bits: three times it rounds to a tie in f32, and lies
// beside the tie exactly. Both signs are drawn where there are numbers of both.
std::uint32_t beside_tie(int bits, std::uint32_t word) {
  const int shift = 26 - bits;
  const std::uint64_t least = std::uint64_t{1} << (bits - 1), count = least / 4;  // T from least + 1 to 1.5 * least
  const std::uint64_t first = CounterRandom::scale(word, static_cast<std::uint32_t>(count));
  for (std::uint64_t attempt = 0; attempt < 2 * count; ++attempt) {
    const std::uint64_t tie = (least + 1 + 2 * ((first + attempt) % count)) << shift;
    const bool above = (word & 1) == (attempt < count ? 1 : 0);
    const std::uint64_t beside = above ? tie + 1 : tie - 1;
    if (beside % 3 == 0) return static_cast<std::uint32_t>(beside / 3);
  }
  throw InvalidArgument("bits", show(bits), "a tie that a multiple of 3 lies beside");
}

// The scale of block (i, j) of group g. Neighbours along i, j and g always differ in exponent, so a scale taken from
// another block shows.
std::uint32_t scale_code(const ScaleRequest& r, const CounterRandom& random, std::int64_t g, std::int64_t i, std::int64_t j,
                         bool at_end, std::uint64_t index) {
  const Words w = random.words(index);
  const int wave = r.level
                       ? 0
                       : static_cast<int>(r.narrow ? (at_end && r.ends != 0 ? r.ends : (g + i + r.spread * j) % (r.spread + 1))
                                                   : (g + 2 * i + 3 * j) % 5);
  const int exponent = r.kind == ScaleKind::ones ? 0 : r.centre + wave - (r.narrow ? 0 : 2);
  const bool edge = r.kind == ScaleKind::edge && w[2] % 4 == 0;
  if (r.kind == ScaleKind::specials) {
    ScaleRequest plain = r;
    plain.kind = ScaleKind::plain;
    return special_code(r.type, (g + i + j) % 8, scale_code(plain, random, g, i, j, at_end, index));
  }
  if (r.kind == ScaleKind::negative) {
    ScaleRequest plain = r;
    plain.kind = ScaleKind::plain;
    const std::uint32_t code = scale_code(plain, random, g, i, j, at_end, index),
                        sign = r.type == Format::f32 ? 0x8000'0000 : 0x80;
    return g + i + j == 0 || w[1] % 2 != 0 ? code | sign : code;
  }
  if (r.kind == ScaleKind::opposed) {
    if (r.type == Format::e8m0) return r.opposed_low ? 0x01 : 0xFE;
    if (r.type == Format::e4m3) return r.opposed_low ? 0x08 : 0x7E;
    return r.opposed_low ? 0x0080'0000 : 0x7F7F'FFFF;
  }
  if (r.kind == ScaleKind::extremes) {
    const bool least = (g + i + j) % 2 != 0;
    if (r.type == Format::e8m0) return least ? 0x00 : 0xFE;
    if (r.type == Format::e4m3) return least ? 0x01 : 0x7E;
    return least ? 0x0000'0001 : 0x7F7F'FFFF;
  }
  if (r.kind == ScaleKind::two_roundings && (g + i + j) % 2 == 0) {
    return compose(fields_of(Format::f32), false, beside_tie(r.tie_bits, w[0]), exponent - 23);
  }
  const std::uint32_t chosen = w[3] % 6;
  switch (r.type) {
    case Format::e8m0: {
      constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0xFE, 0xFD, 0x7F, 0xFF};
      if (edge) return chosen == 5 && (!r.with_nan || w[1] % 16 != 0) ? 0x7F : kEdges[chosen];
      return static_cast<std::uint32_t>(exponent + 127);
    }
    case Format::e4m3: {
      constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7E, 0x07, 0x08, 0x7F};
      if (edge) return chosen == 5 && (!r.with_nan || w[1] % 16 != 0) ? 0x38 : kEdges[chosen];
      const std::uint32_t mantissa = r.kind == ScaleKind::plain || r.kind == ScaleKind::edge ? w[0] >> 29 : 0;
      const int at = r.kind == ScaleKind::ones ? 0 : exponent + 8 + 2;  // d8 lies high in its range
      return static_cast<std::uint32_t>(at + 7) << 3 | mantissa;
    }
    default: {
      constexpr std::uint32_t kEdges[] = {0x0040'0000, 0x0020'0000, 0x7B00'0000, 0x0080'0000, 0x3F80'0000, 0x0020'4081};
      if (edge) return kEdges[chosen];
      const bool plain = r.kind != ScaleKind::pow2 && r.kind != ScaleKind::ones;
      return compose(fields_of(Format::f32), false, plain ? 0x80'0000 | w[0] >> 9 : 0x80'0000, exponent - 23);
    }
  }
}

}  // namespace

ScaleKind scale_kind_of(const std::string& word) {
  return word == "plain"      ? ScaleKind::plain
         : word == "pow2"     ? ScaleKind::pow2
         : word == "edge"     ? ScaleKind::edge
         : word == "ones"     ? ScaleKind::ones
         : word == "specials" ? ScaleKind::specials
         : word == "opposed"  ? ScaleKind::opposed
         : word == "negative" ? ScaleKind::negative
         : word == "extremes" ? ScaleKind::extremes
                              : ScaleKind::two_roundings;
}

Tensor block_scales_tensor(const ScaleRequest& request, Recipe recipe, Direction direction,
                           const std::vector<std::int64_t>& splits, std::int64_t columns, bool grouped, ScaleLayout layout) {
  ScaleRequest r = request;
  r.type = scale_format(recipe);
  const CounterRandom random(r.seed, r.tensor);
  const std::vector<std::int64_t> offsets = scale_offsets(recipe, direction, splits, columns);
  const bool one = is_per_tensor(recipe);

  Tensor tensor = make(r.type, {offsets.back()});
  const std::uint32_t poison = r.type == Format::f32 ? kScalePoison : nan_code(r.type);
  store(std::vector<std::uint32_t>(static_cast<std::size_t>(offsets.back()), poison), tensor);
  for (std::size_t g = 0; g < splits.size(); ++g) {
    const ScaleShape shape = scale_shape(recipe, direction, splits[g], columns);
    count_work(shape.used_rows);  // they are gone through, whatever their length
    for (std::int64_t i = 0; i < shape.used_rows; ++i) {
      for (std::int64_t j = 0; j < shape.used_columns; ++j) {
        if (r.no_group && r.no_group(recipe == Recipe::block_1x128 ? j : i)) continue;
        const std::int64_t at = offsets[g] + i * shape.columns + j;
        const std::uint32_t code = scale_code(r, random, static_cast<std::int64_t>(g), i, j,
                                              j == 0 || j == shape.used_columns - 1, static_cast<std::uint64_t>(at));
        store(std::span(&code, 1), tensor, at);
      }
    }
  }
  if (layout == ScaleLayout::swizzled) {
    Tensor swizzled = make(r.type, tensor.shape);
    for (std::size_t g = 0; g < splits.size(); ++g) {
      const auto size = static_cast<std::size_t>(offsets[g + 1] - offsets[g]);
      swizzle_scales(recipe, direction, splits[g], columns, {tensor.as<std::uint8_t>() + offsets[g], size},
                     {swizzled.as<std::uint8_t>() + offsets[g], size});
    }
    tensor = std::move(swizzled);
  }
  if (!grouped && !one) {
    const ScaleShape shape = scale_shape(recipe, direction, splits[0], columns);
    tensor.shape = {shape.rows, shape.columns};
  }
  return tensor;
}

Tensor group_floats(ScaleRequest request, std::size_t groups) {
  request.type = Format::f32;
  const CounterRandom random(request.seed, request.tensor);
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(groups)});
  for (std::size_t g = 0; g < groups; ++g) {
    const bool left_out = request.no_group && request.no_group(static_cast<std::int64_t>(g));
    const std::uint32_t code =
        left_out ? kScalePoison : scale_code(request, random, static_cast<std::int64_t>(g), 0, 0, false, g);
    store(std::span(&code, 1), tensor, static_cast<std::int64_t>(g));
  }
  return tensor;
}

}  // namespace assay::conformance::inputs
