#include <bit>

#include "reference/arithmetic/tensor_core.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// The meaning of codes with the largest exponent field.
enum class Top { ieee, all_ones_is_nan, finite, fnuz };

struct Fields {
  int exponent_bits;
  int fraction_bits;
  int bias;
  Top top;
};

Fields fields_of(Format format) {
  switch (format) {
    case Format::f32: return {8, 23, 127, Top::ieee};
    case Format::bf16: return {8, 7, 127, Top::ieee};
    case Format::f16: return {5, 10, 15, Top::ieee};
    case Format::e5m2: return {5, 2, 15, Top::ieee};
    case Format::e4m3: return {4, 3, 7, Top::all_ones_is_nan};
    case Format::e2m1: return {2, 1, 1, Top::finite};
    case Format::e3m2: return {3, 2, 3, Top::finite};
    case Format::e2m3: return {2, 3, 1, Top::finite};
    case Format::e4m3_fnuz: return {4, 3, 8, Top::fnuz};
    case Format::e5m2_fnuz: return {5, 2, 16, Top::fnuz};
    default: require(false, "format", name_of(format), "f32, bf16, f16, or a format of 4 to 8 bits with a sign"); return {};
  }
}

}  // namespace

Term decode_term(Format format, std::uint32_t bits) {
  const Fields fields = fields_of(format);
  const int width = 1 + fields.exponent_bits + fields.fraction_bits;
  require(width == 32 || bits >> width == 0, "bits", bits, "a code no wider than its format");

  const std::uint32_t exponent_top = (1u << fields.exponent_bits) - 1;
  const std::uint32_t fraction_top = (1u << fields.fraction_bits) - 1;
  const std::uint32_t exponent = (bits >> fields.fraction_bits) & exponent_top;
  const std::uint32_t fraction = bits & fraction_top;

  Term term;
  term.negative = bits >> (width - 1) != 0;
  term.fraction = fields.fraction_bits;
  if (exponent == exponent_top && fields.top == Top::ieee) {
    term.kind = fraction != 0 ? Term::Kind::nan : Term::Kind::infinity;
    return term;
  }
  if (exponent == exponent_top && fields.top == Top::all_ones_is_nan && fraction == fraction_top) {
    term.kind = Term::Kind::nan;
    return term;
  }
  if (fields.top == Top::fnuz && bits == 1u << (width - 1)) {  // in place of -0
    term.kind = Term::Kind::nan;
    return term;
  }
  if (exponent == 0) {
    term.significand = fraction;  // subnormal: not renormalised
    term.exponent = 1 - fields.bias;
  } else {
    term.significand = fraction | 1u << fields.fraction_bits;
    term.exponent = static_cast<int>(exponent) - fields.bias;
  }
  return term;
}

}  // namespace assay
