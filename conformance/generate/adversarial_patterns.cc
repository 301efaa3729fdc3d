// Patterns that lie where a kernel's rounding, scales or order of additions can go wrong.

#include <bit>

#include "conformance/generate/pattern_source.h"

namespace assay::conformance {

// The largest value of each block is 1.75 * 2^e or up to three units in the last place beside it: where 448/amax and
// 57344/amax pass a power of two, and where amax/448 and amax/57344 are rounded up to the next one. Column stripes differ
// in e: ordinary, far from 1, where the scale overflows (f32, bf16), where it reaches the smallest E8M0.
std::uint32_t adversarial_amax(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const FormatFields& f = s.fields;
  const std::int64_t stripe = s.request.one_scale ? static_cast<std::int64_t>(s.request.seed) : column / s.request.block;
  const int overflow = s.target.mantissa == 3 ? -120 : -113;
  int centre = 0, reach = 3;
  switch (stripe % 4) {
    case 1: centre = f.bias == 15 ? -8 : s.grid(-2, stripe) & 1 ? 60 : -60; break;
    case 2: centre = f.bias == 15 ? 6 : overflow, reach = f.bias == 15 ? 3 : 0; break;
    case 3: centre = f.bias == 15 ? -4 : overflow + 1, reach = f.bias == 15 ? 3 : 0; break;
    default: break;
  }
  const int exponent =
      centre + (reach == 0 ? 0 : static_cast<int>(pick(w[1], 2 * static_cast<std::uint32_t>(reach) + 1)) - reach);
  if (!is_peak(s, row, column)) return compose(f, w[1] >> 31, w[0] >> 8, centre - reach - 1 - 24);
  return neighbour(f, compose(f, w[3] & 1, 7, exponent - 2), static_cast<int>(pick(w[2], 7)) - 3);
}

// Blocks whose largest value is below, at and above eps, and blocks of zeros.
std::uint32_t adversarial_eps(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(s.request.eps);
  const std::uint32_t field = bits >> 23;
  const std::uint32_t significand = (bits & 0x7f'ffff) | (field == 0 ? 0 : 0x80'0000);
  const int exponent = static_cast<int>(std::max(field, 1u)) - 150;
  const std::int64_t stripe = s.request.one_scale ? static_cast<std::int64_t>(s.request.seed) : column / s.request.block;
  if (stripe % 4 == 0) return w[0] & 1 ? sign_bit(s.fields) : 0;
  const std::uint32_t at = compose(s.fields, w[3] & 1, significand, exponent);
  if (is_peak(s, row, column)) return neighbour(s.fields, at, static_cast<int>(stripe % 4) - 2);
  return compose(s.fields, w[1] >> 31, w[0] >> 24, exponent + 23 - 8 - 2);  // below eps / 4
}

// NVFP4 4over6: the two errors of every block and tile are equal except for the rounding of their sums, so that the order of
// additions decides, and the rule for equal errors where nothing is rounded (bf16, f16). With u the unit of a tile, which its
// scale for 6 decodes to, and 1.5 u for 4: x between 0.5 u and 0.75 u, or 0.75 u and u, lies as far from a code of the one as
// its mirror image in that interval from a code of the other. Below u / 16 both errors are x; 6 u, which every row and column
// of a tile has, is without error. Tiles in every fourth place across have the tensor's largest.
std::uint32_t adversarial_four_over_six(const Source& s, std::int64_t row, std::int64_t column) {
  // Lines of a tile in pairs of a value and its image, so that no exchange of halves in a tree of sums maps one on the other.
  constexpr int kPair[16] = {0, 0, 1, 2, 3, 1, 4, 5, 6, 2, 7, 4, 5, 7, 3, 6};
  constexpr int kSecond[16] = {0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1};
  const int r = static_cast<int>(row % 16), c = static_cast<int>(column % 16);
  const bool negative = s.draw(row, column)[3] & 1, image = kSecond[r] != kSecond[c];
  const bool largest = column / 16 % 4 == 0;
  const std::uint32_t unit = largest ? static_cast<std::uint32_t>(s.request.e4m3_max) : 1;
  const int exponent = largest ? 0 : static_cast<int>(pick(s.grid(row / 16, column / 16), 7)) - 3;
  const Words w = s.draw(row - r + kPair[r], column - c + kPair[c]);
  const int bits = s.fields.mantissa - 1;  // of a quarter of u
  const std::uint32_t quarter = 1u << bits, inside = 1 + pick(w[0], quarter - 1);
  if (kPair[r] == kPair[c] && !image) return compose(s.fields, negative, unit * 6, exponent);
  if (kPair[r] == kPair[c] || w[1] % 8 == 0) return compose(s.fields, negative, unit * inside, exponent - 4 - bits);
  const std::uint32_t lower = w[2] & 1 ? 2 * quarter : 3 * quarter;
  return compose(s.fields, negative, unit * (lower + (image ? quarter - inside : inside)), exponent - 2 - bits);
}

// Column sums whose last bits tell one order of additions from another.
std::uint32_t adversarial_dbias(const Source& s, std::int64_t row, std::int64_t column) {
  const Words w = s.draw(row, column);
  const int reach = s.fields.bias == 15 ? 16 : 24;
  const int exponent = static_cast<int>(pick(w[1], static_cast<std::uint32_t>(reach))) - reach / 2;
  return compose(s.fields, w[2] >> 31, 0x80'0000 | w[0] >> 9, exponent - 23);
}

// Products whose sum is an integer with one bit more than the output has: half of them are exact ties of the final
// rounding, and lines with a fraction of a quarter lie beside. Scales must be 1.
std::uint32_t adversarial_output_ties(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t at = s.k(row, column);
  const Words w = s.draw(row, column);
  const bool first = s.request.role != Role::second;
  const int lead = s.request.output == Format::f16 ? 7 : 4;
  if (s.fields.bits == 4) {  // e2m1 reaches 6: sums of 4 * 4 over many k
    return compose(s.fields, w[1] >> 31, first || at % 2 == 0 ? 4 : 1, 0);
  }
  const int kept = std::min(s.fields.mantissa, 4);
  if (at == 0) {
    return first ? compose(s.fields, false, 1, lead)
                 : compose(s.fields, w[1] >> 31, (1u << kept) + pick(w[0], 1u << kept), 4 - kept);
  }
  if (at < 16) return compose(s.fields, w[1] >> 31, 1, 0);
  if (at == 16) return first && s.grid(s.free(row, column), -7) % 4 != 0 ? 0 : compose(s.fields, w[1] >> 31, 1, -1);
  return 0;
}

// In every step one large product, all others around `fraction_bits` below it: the result depends on what alignment cuts off.
std::uint32_t adversarial_alignment(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t at = s.k(row, column);
  const Words w = s.draw(row, column);
  const std::uint32_t significand = 0x80'0000 | w[0] >> 9;
  const bool negative = w[1] >> 31;
  if (s.fields.bits == 4)
    return compose(s.fields, negative, at % s.request.step == 0 ? 6 : 1 + pick(w[0], 2), at % s.request.step == 0 ? 0 : -1);
  if (at % s.request.step == 0) return compose(s.fields, negative, significand, 3 - 23);
  const int half = s.request.fraction_bits / 2;
  if (s.request.role != Role::second) return compose(s.fields, negative, significand, 3 - half - 23);
  const int beside = static_cast<int>(pick(w[2], 5)) - 2;
  return compose(s.fields, negative, significand, 3 - (s.request.fraction_bits - half) - beside - 23);
}

// The first promotion block of 128 sums to about 2^16, each later one to odd multiples of 2^-8: half a unit of the running f32, so
// the additions between blocks are ties or lie beside one. Scales must be 1.
std::uint32_t adversarial_promotion(const Source& s, std::int64_t row, std::int64_t column) {
  const std::int64_t at = s.k(row, column);
  const Words w = s.draw(row, column);
  if (at % 128 != 0) return 0;
  const int high = s.fields.bits == 4 ? 2 : 8, low = s.fields.bits == 4 ? -1 : -4;
  if (at == 0)
    return compose(s.fields, false,
                   (1u << s.fields.mantissa) + (s.request.role == Role::second ? pick(w[0], 1u << s.fields.mantissa) & ~1u : 0),
                   high - s.fields.mantissa);
  return compose(s.fields, s.request.role == Role::second && w[1] >> 31, 2 * pick(w[0], 2) + 1, low);
}

}  // namespace assay::conformance
