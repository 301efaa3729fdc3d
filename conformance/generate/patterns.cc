#include "conformance/generate/patterns.h"

#include <vector>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/pattern_source.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::uint32_t uniform(const Source& s, std::int64_t row, std::int64_t column) { return uniform_bits(s, s.draw(row, column)); }

// Eight 16-bit uniforms less their mean: near to a normal of deviation 0.82 * 2^shift.
std::uint32_t normal(const Source& s, std::int64_t row, std::int64_t column) {
  std::int32_t sum = -4 * 65535;
  for (const std::uint32_t word : s.draw(row, column)) sum += static_cast<std::int32_t>((word & 0xffff) + (word >> 16));
  return compose(s.fields, sum < 0, static_cast<std::uint32_t>(sum < 0 ? -sum : sum), s.scale - (s.is_code ? 18 : 16));
}

// Every finite bit pattern with equal probability.
std::uint32_t full_exponent(const Source& s, std::int64_t row, std::int64_t column) {
  const std::uint32_t code = s.draw(row, column)[0] >> (32 - s.fields.bits);
  const bool finite = (code & (sign_bit(s.fields) - 1)) <= s.fields.top;
  return finite ? code : code ^ (sign_bit(s.fields) >> 1);  // a lower exponent
}

// Exponent fields from 0 on: subnormals, the smallest normals, and blocks of which some have only subnormals. Scales of
// block recipes overflow or reach their smallest value here.
std::uint32_t near_underflow(const Source& s, std::int64_t row, std::int64_t column) {
  const std::uint32_t range = s.fields.bits <= 4 ? 1 : s.fields.bits == 8 ? 2 : s.request.type == Format::f16 ? 6 : 18;
  const std::int64_t block = s.request.block;
  const std::uint32_t tile = s.grid(row / 128, column / block);
  const std::uint32_t base = (tile % 4 == 0 ? 0 : pick(tile, range)) + (range > 2 ? pick(s.grid(row, -1), 4) : 0);
  const Words w = s.draw(row, column);
  const std::uint32_t below = pick(w[1], 6);
  const std::uint32_t exponent = base > below ? base - below : 0;
  const std::uint32_t mantissa = (w[0] >> 8) & ((1u << s.fields.mantissa) - 1);
  return (w[2] >> 31 ? sign_bit(s.fields) : 0) | exponent << s.fields.mantissa | mantissa;
}

// Regions of 32 rows by 64 columns: clean, all special, only zeros of both signs, or one element in eight special.
std::uint32_t sprinkled(const Source& s, std::int64_t row, std::int64_t column, bool with_infinity) {
  const Words w = s.draw(row, column);
  if (s.request.role != Role::value) {
    // In a product one special spoils a whole row of D: one row in eight has one; zeros of both signs are everywhere.
    const std::int64_t line = s.free(row, column);
    const std::uint32_t chosen = s.grid(line, -2);
    const std::int64_t length =
        std::max<std::int64_t>(s.request.contract_rows ? std::min(s.request.rows, s.request.contraction) : s.request.columns, 1);
    if (chosen % 8 == 0 &&
        s.k(row, column) == static_cast<std::int64_t>(pick(s.grid(line, -3), static_cast<std::uint32_t>(length)))) {
      return special(s, w, with_infinity);
    }
    if (w[2] % 16 == 0) return w[3] & 1 ? sign_bit(s.fields) : 0;
    return uniform_bits(s, w);
  }
  switch (s.grid(row / 32, column / 64) % 8) {
    case 0: return uniform_bits(s, w);
    case 1: return special(s, w, with_infinity);
    case 2: return w[0] & 1 ? sign_bit(s.fields) : 0;
    case 3:
    case 4: return w[2] % 8 == 0 ? special(s, w, false) : uniform_bits(s, w);
    default: return w[2] % 8 == 0 ? special(s, w, with_infinity) : uniform_bits(s, w);
  }
}
std::uint32_t specials(const Source& s, std::int64_t row, std::int64_t column) { return sprinkled(s, row, column, true); }
std::uint32_t nans(const Source& s, std::int64_t row, std::int64_t column) { return sprinkled(s, row, column, false); }

// The first region holds every kind of special value, for any size and seed; the other regions are those of specials.
std::uint32_t every_special(const Source& s, std::int64_t row, std::int64_t column) {
  if (s.request.role == Role::value && (row >= 32 || column >= 64)) return specials(s, row, column);
  return first_specials(s, row, column);
}

// Halves between two codes of the target, under a scale that is an exact power of two because each block's largest value
// is the target's largest times one. `steps`: how many units in the last place beside the midpoint.
std::uint32_t midpoint(const Source& s, std::int64_t row, std::int64_t column, bool beside) {
  const Words w = s.draw(row, column);
  const FormatFields& t = s.target;
  const std::uint32_t largest = t.bits == 4 ? 3 : (2u << t.mantissa) - (t.mantissa == 3 ? 2 : 1);  // 3, 14 or 7: significand
  const int largest_exponent = t.bits == 4 ? 1 : t.mantissa == 3 ? 5 : 13;                         // 6, 448 or 57344
  // Peaks lie at 1.75 (1.5) except for f16, whose exponents end too early for the small ties.
  const int wanted = s.request.type == Format::f16 ? 0 : t.bits == 4 ? -2 : t.mantissa == 3 ? -8 : -15;
  const int vary = s.request.one_scale || s.request.type == Format::f16 ? 0 : static_cast<int>(s.grid(-1, column / 128) % 5);
  const int scale = wanted + vary;
  const bool negative = w[3] & 1;
  if (is_peak(s, row, column)) return compose(s.fields, negative, largest, largest_exponent + scale);

  std::uint32_t code = 0;
  if (t.bits == 4) {
    constexpr std::uint32_t kQuarters[] = {1, 3, 5, 7, 10, 14, 20};  // 0.25 0.75 1.25 1.75 2.5 3.5 5
    code = compose(s.fields, negative, kQuarters[pick(w[0], 7)], scale - 2);
  } else {
    // Odd multiples of half a unit: of the subnormals' unit in exponent 0, of the binade's above.
    const int smallest = 1 - t.bias;
    const std::uint32_t binades = static_cast<std::uint32_t>(2 * t.bias - (t.mantissa == 3 ? 0 : 1));
    const int binade = static_cast<int>(pick(w[1], binades + 1)) + smallest - 1;
    const std::uint32_t half = (pick(w[0], 1u << t.mantissa) << 1) | 1;
    const std::uint32_t significand = binade < smallest ? half : half + (2u << t.mantissa);
    code = compose(s.fields, negative, significand, std::max(binade, smallest) - t.mantissa - 1 + scale);
  }
  return beside ? neighbour(s.fields, code, static_cast<int>(pick(w[2], 3)) - 1) : code;
}
std::uint32_t ties(const Source& s, std::int64_t row, std::int64_t column) { return midpoint(s, row, column, false); }
std::uint32_t adversarial_midpoints(const Source& s, std::int64_t row, std::int64_t column) {
  return midpoint(s, row, column, true);
}

// Nineteen in twenty are 0, and a quarter of all 4 x 128 regions entirely.
std::uint32_t sparse(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const bool empty = s.grid(row / 4, column / 128) % 4 == 0;
  return empty || pick(w[2], 20) != 0 ? 0 : uniform_bits(s, w);
}

// One element of each row (along the contraction of a product) is a power of two; the second operand is dense.
std::uint32_t one_hot(const Source& s, std::int64_t row, std::int64_t column) {
  if (s.request.role == Role::second) return uniform(s, row, column);
  const std::int64_t line = s.free(row, column);
  const std::int64_t length = s.request.contract_rows ? std::max<std::int64_t>(s.request.contraction, 1) : s.request.columns;
  const std::uint32_t word = s.grid(line, -4);
  if (s.k(row, column) != static_cast<std::int64_t>(pick(word, static_cast<std::uint32_t>(length)))) return 0;
  const int spread = s.request.type == Format::e2m1 ? 2 : 5;
  return compose(s.fields, word & 1, 1, static_cast<int>(word / 2 % static_cast<std::uint32_t>(spread)) - spread / 2);
}

// Exponents within 4 to 8 of a centre that moves from line to line, and in every step of the sum one pair of large
// products that cancel exactly.
std::uint32_t clustered(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t step = s.request.step, at = s.k(row, column);
  const Words pair = s.shared.words(static_cast<std::uint64_t>(at / step));
  const std::int64_t a = pick(pair[0], static_cast<std::uint32_t>(step));
  const std::int64_t b = (a + 1 + pick(pair[1], static_cast<std::uint32_t>(step - 1))) % step;
  const std::int64_t within = at % step;
  const bool copies = within == b;
  std::int64_t source_row = row, source_column = column;
  if (copies) (s.request.contract_rows ? source_row : source_column) += a - b;

  const Words w = s.draw(source_row, source_column);
  const std::uint32_t line = s.grid(s.free(row, column), -5);
  const int reach = s.fields.bits == 4 ? 1 : s.fields.bits == 8 ? 4 : 4 + static_cast<int>(line % 5);
  const int centre = s.fields.bits == 4 ? 1 : static_cast<int>(line / 8 % 3) - 1 + (s.is_code ? 1 : 0);
  const bool planted = copies || within == a;
  const int exponent =
      planted ? centre + reach : centre - reach + static_cast<int>(pick(w[1], 2 * static_cast<std::uint32_t>(reach)));
  const bool negative = (w[2] >> 31) != (copies && s.request.role != Role::second);
  return compose(s.fields, negative, 0x80'0000 | w[0] >> 9, exponent - 23);
}

// Codes in sequence. Inputs of quantize have every code, NaN and infinity too (f32: the upper half in order, the lower random);
// operands of a product have the finite ones.
std::uint32_t every_code(const Source& s, std::int64_t row, std::int64_t column) {
  const FormatFields& f = s.fields;
  const auto index = static_cast<std::uint64_t>(row * s.request.columns + column);
  if (f.bits == 32) return static_cast<std::uint32_t>(index << 16) | (s.draw(row, column)[0] & 0xffff);
  const std::uint32_t mask = (1u << f.bits) - 1;
  const std::uint32_t code =
      (f.bits <= 8 ? static_cast<std::uint32_t>(column + 13 * row) : static_cast<std::uint32_t>(index)) & mask;
  const bool finite = (code & (mask >> 1)) <= f.top;
  return finite || s.request.role == Role::value ? code : code & sign_bit(f);
}

// Order-free: integers of magnitude 1 to `amplitude`, times one power of two a tensor, so that every partial sum of a
// product is a multiple of one unit and at most 2^13 units.
std::uint32_t integers(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const int shift = s.fields.bits == 4 ? 0 : static_cast<int>(s.grid(-6, -6) % 3) - 1;
  return compose(s.fields, w[1] >> 31, 1 + pick(w[0], static_cast<std::uint32_t>(s.request.amplitude)), shift);
}

// Order-free, and as wide as the narrowest legal accumulator: a product of 2^anchor at the start of each period, and small
// even products of both signs up to the last, which is odd and positive. Every right sum is exact; one with fewer bits loses
// the odd product at least, and a tail of any length that is dropped takes an odd number with it. With `cancel` the last
// product is -2^anchor, so that a narrow D shows every bit of what is left, and the second product is odd too. With `ends`
// the anchors of the first and of the last period cancel one another, between which their larger scales leave wide sums.
std::uint32_t wide_sums(const Source& s, std::int64_t row, std::int64_t column) {
  const PatternRequest& r = s.request;
  const Words w = s.draw(row, column);
  const std::int64_t at = s.k(row, column);
  const std::int64_t depth = !r.contract_rows || !r.depth ? r.contraction : r.depth(row);
  const std::int64_t start = r.period == 0 ? 0 : at / r.period * r.period;
  const std::int64_t last = (r.period == 0 ? depth : std::min(start + r.period, depth)) - 1;
  const bool second = r.role == Role::second;
  const int unit = s.fields.bits == 4 ? -1 : 0;  // e2m1 counts halves
  const auto anchor = [&](bool negative) {
    return compose(s.fields, negative && !second, 1, (second ? r.anchor / 2 : r.anchor - r.anchor / 2) + unit);
  };
  if (at == start && last > start && !(r.ends && start > 0 && last == depth - 1)) return anchor(false);
  if (r.ends && start > 0 && last == depth - 1 && at == last) return anchor(true);
  if (r.ends && depth > r.period && (start == 0 || last == depth - 1)) return 0;
  if (r.cancel && at == last && last > start + 1) return anchor(true);
  const auto amplitude = static_cast<std::uint32_t>(r.amplitude);
  const bool odd = r.cancel && last > start + 1 ? at == last - 1 || at == start + 1 : at == last;
  // 1, 3, 5 ... up to the amplitude, and in the second operand 2, 4 ... where the product is to be even.
  if (!second || odd) return compose(s.fields, !odd && w[1] >> 31, 2 * pick(w[0], (amplitude + 1) / 2) + 1, unit);
  return compose(s.fields, w[1] >> 31, 2 * pick(w[0], std::max(amplitude / 2, 1u)) + 2, unit);
}

// Uniform data whose size changes from block to block by four and more.
std::uint32_t block_scales(const Source& s, std::int64_t row, std::int64_t column) {
  if (s.is_code) return uniform(s, row, column);  // codes: the scales differ instead
  const std::int64_t i = row / s.request.block, j = column / s.request.block;
  const int shift = static_cast<int>((i * 2 + j * 3) % 5) * 3 - 6 - static_cast<int>(s.grid(i, j) & 1);
  return uniform_bits(s, s.draw(row, column), shift);
}

std::uint32_t zeros(const Source&, std::int64_t, std::int64_t) { return 0; }

using Element = std::uint32_t (*)(const Source&, std::int64_t, std::int64_t);
struct Pattern {
  PatternInfo info;
  Element element;
};

// clang-format off
constexpr Pattern kPatterns[] = {
    {{"uniform", "uniform in (-1, 1); codes fill their range"}, uniform},
    {{"normal", "near to a normal distribution, from integer sums"}, normal},
    {{"full_exponent", "every finite bit pattern alike"}, full_exponent},
    {{"near_underflow", "subnormals and the smallest normals"}, near_underflow},
    {{"specials", "infinities, NaN, -0, subnormals and the largest values among uniform data"}, specials},
    {{"every_special", "each kind of special value for certain, in the first 32 rows by 64 columns; beyond them as specials"}, every_special},
    {{"nans", "the same without infinities"}, nans},
    {{"ties", "exact midpoints between two codes of the target"}, ties},
    {{"subnormals", "nothing but subnormals"}, subnormals},
    {{"sparse", "mostly +0, whole blocks of zeros"}, sparse},
    {{"one_hot", "one power of two a row"}, one_hot},
    {{"clustered", "exponents near a centre, with pairs that cancel exactly"}, clustered},
    {{"every_code", "all codes of the type in turn"}, every_code},
    {{"integers", "small integers times powers of two: every order of summation gives the same bits"}, integers},
    {{"wide_sums", "order-free sums that need every bit of the narrowest legal accumulator"}, wide_sums},
    {{"block_scales", "sizes that differ from block to block by much more than rounding"}, block_scales},
    {{"zeros", "nothing but +0"}, zeros},
    {{"adversarial_midpoints", "midpoints between two codes, and one unit either side"}, adversarial_midpoints},
    {{"adversarial_amax", "block maxima at the powers of two of the scale, and up to three units either side"}, adversarial_amax},
    {{"adversarial_eps", "block maxima below, at and above eps, and zero blocks"}, adversarial_eps},
    {{"adversarial_four_over_six", "blocks whose two errors of 4over6 are equal but for rounding"}, adversarial_four_over_six},
    {{"adversarial_dbias", "column sums that tell one order of additions from another"}, adversarial_dbias},
    {{"adversarial_infinities", "columns with infinities of both signs, of one, with sums that overflow, with subnormal sums"}, adversarial_infinities},
    {{"adversarial_transform", "columns whose random Hadamard transform ends at ties and at the last place that is kept"}, adversarial_transform},
    {{"adversarial_gates", "gate and up of an activation, side by side: special values of both, gates whose exponential is large, ties"}, adversarial_gates},
    {{"adversarial_cancelling", "large products that cancel exactly in every step, and one small one that is the sum"}, adversarial_cancelling},
    {{"adversarial_output_ties", "sums that are ties of the rounding to the type of D"}, adversarial_output_ties},
    {{"adversarial_alignment", "products that the alignment of a step cuts in part"}, adversarial_alignment},
    {{"adversarial_promotion", "f32 additions between promotion blocks of K that are ties"}, adversarial_promotion},
    {{"unit_probes", "sums that tell one tensor-core unit from another (unit_probes.h)"}, unit_probe},
    {{"step_edges", "sums that one field of a tensor-core unit more or less changes: its grid, floor, accumulator and step"}, step_edges},
    {{"adversarial_thresholds", "sums at the smallest normal value of D and a quarter of its last place below; 4over6: ties under either scale, with equal errors"}, adversarial_thresholds},
};
// clang-format on

}  // namespace

std::span<const PatternInfo> patterns() {
  static const std::vector<PatternInfo> infos = [] {
    std::vector<PatternInfo> list;
    for (const Pattern& each : kPatterns) list.push_back(each.info);
    return list;
  }();
  return infos;
}

namespace {

const Pattern& checked(const PatternRequest& request) {
  const Pattern* found = nullptr;
  std::vector<std::string_view> names;
  for (const Pattern& each : kPatterns) {
    names.push_back(each.info.name);
    if (each.info.name == request.pattern) found = &each;
  }
  if (found == nullptr)
    throw InvalidArgument("pattern", request.pattern, "the name of a data pattern" + did_you_mean(request.pattern, names));
  require(request.block >= 1 && request.step >= 2, "block", request.block, "blocks of 1 and steps of 2 or more");
  return *found;
}

}  // namespace

void fill_pattern_rows(const PatternRequest& request, std::int64_t first_row, std::span<std::uint32_t> bits) {
  const Element element = checked(request).element;
  Source source{request};
  const std::int64_t columns = request.columns, rows = columns == 0 ? 0 : static_cast<std::int64_t>(bits.size()) / columns;
  require(rows * columns == static_cast<std::int64_t>(bits.size()) && first_row >= 0 && first_row + rows <= request.rows, "bits",
          bits.size(), "one word for each element of whole rows");
  for (std::int64_t row = 0; row < rows; ++row) {
    source.begin_row(first_row + row);
    for (std::int64_t column = 0; column < columns; ++column) {
      bits[static_cast<std::size_t>(row * columns + column)] = element(source, first_row + row, column);
    }
  }
}

void fill_pattern(const PatternRequest& request, std::span<std::uint32_t> bits) {
  checked(request);
  require(static_cast<std::int64_t>(bits.size()) == request.rows * request.columns, "bits", bits.size(), "one word an element");
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(request.columns, 1));
  parallel_for(request.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    fill_pattern_rows(request, begin,
                      bits.subspan(static_cast<std::size_t>(begin * request.columns),
                                   static_cast<std::size_t>((end - begin) * request.columns)));
  });
}

}  // namespace assay::conformance
