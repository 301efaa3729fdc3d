#include "reference/rules/rule_rows.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "reference/formats/fast_codes.h"
#include "reference/formats/x_types.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

// Runs body(first, count, block) for each block of a row. Narrow extents are constants, so that a block is a vector or two without a
// loop. `body` must be inlined, or it is compiled for the oldest processor.
#define ASSAY_INLINE_BODY __attribute__((always_inline))

template <int kBlock, class Body>
ASSAY_INLINE void each_block_of(std::int64_t blocks, const Body& body) {
  for (std::int64_t j = 0; j < blocks; ++j) body(j * kBlock, kBlock, j);
}

template <class Body>
ASSAY_INLINE void each_block(std::int64_t columns, std::int64_t block, const Body& body) {
  if (block == 16 && columns % 16 == 0) return each_block_of<16>(columns / 16, body);
  if (block == 32 && columns % 32 == 0) return each_block_of<32>(columns / 32, body);
  for (std::int64_t c = 0, j = 0; c < columns; c += block, ++j) body(c, std::min(block, columns - c), j);
}

template <class X>
ASSAY_INLINE void ranks_without_nan(const typename X::Storage* __restrict x, std::int64_t columns, std::int64_t block,
                                    std::int32_t* __restrict ranks) {
  each_block(columns, block, [&](std::int64_t first, std::int64_t count, std::int64_t j) ASSAY_INLINE_BODY {
    typename X::Rank largest = X::kZero;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, X::rank_of(x[first + i]));
    ranks[j] = std::max(ranks[j], rank_of(X::amax_of(largest)));
  });
}

template <class X>
ASSAY_INLINE std::make_unsigned_t<typename X::Rank> bits_of_x(typename X::Storage x) {
  return std::bit_cast<std::make_unsigned_t<typename X::Rank>>(x);
}

template <class X>
ASSAY_INLINE void magnitudes_with_nan(const typename X::Storage* __restrict x, std::int64_t columns, std::int64_t block,
                                      std::int32_t* __restrict ranks) {
  each_block(columns, block, [&](std::int64_t first, std::int64_t count, std::int64_t j) ASSAY_INLINE_BODY {
    typename X::Rank largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, static_cast<typename X::Rank>(bits_of_x<X>(x[first + i]) & X::kMagnitudeBits));
    }
    const float magnitude = X::widen(std::bit_cast<typename X::Storage>(largest));
    ranks[j] = std::max(ranks[j], static_cast<std::int32_t>(float_bits(magnitude)));
  });
}

ASSAY_CLONES void ranks_of_row(AmaxNan nan, Format type, const void* x, std::int64_t columns, std::int64_t block,
                               std::int32_t* ranks) {
  const auto run = [&]<class X>(X) ASSAY_INLINE_BODY {
    const auto* values = static_cast<const typename X::Storage*>(x);
    if (nan == AmaxNan::ignored) return ranks_without_nan<X>(values, columns, block, ranks);
    magnitudes_with_nan<X>(values, columns, block, ranks);
  };
  switch (type) {
    case Format::bf16: return run(Bf16{});
    case Format::f16: return run(F16{});
    default: return run(F32{});
  }
}

template <Format kFormat>
ASSAY_INLINE std::uint8_t encode_as(float value) {
  if constexpr (kFormat == Format::e4m3) return encode_e4m3(value);
  if constexpr (kFormat == Format::e5m2) return encode_e5m2(value);
  if constexpr (kFormat == Format::e2m1) return encode_e2m1(value);
  if constexpr (kFormat == Format::e3m2) return encode_e3m2(value);
  return encode_e2m3(value);
}

// How a product or quotient becomes a code that is not simply that of the format's own conversion.
struct Rounding {
  CodeFixes fixes;
  float lower, upper;
  std::uint32_t nan;  // the bits of what a NaN becomes
};

ASSAY_INLINE float limited(float value, const Rounding& rounding) {
  const float above = value < rounding.lower ? rounding.lower : value;
  const std::uint32_t within = float_bits(rounding.upper < above ? rounding.upper : above);
  return std::bit_cast<float>(value != value ? rounding.nan : within);
}

// kPlain: no limits, and the codes are those of the format's own conversion.
template <class X, Format kFormat, BlockCode::Operation kOperation, bool kPlain>
ASSAY_INLINE void encode_row(const typename X::Storage* __restrict x, std::int64_t columns, std::int64_t block,
                             const float* __restrict factors, const Rounding& given, std::uint8_t* __restrict codes) {
  const Rounding rounding = given;  // a copy that no store to `codes` can change
  each_block(columns, block, [&](std::int64_t first, std::int64_t count, std::int64_t j) ASSAY_INLINE_BODY {
    const float factor = factors[j];
    for (std::int64_t i = 0; i < count; ++i) {
      const float widened = X::widen(x[first + i]);
      float value = kOperation == BlockCode::Operation::quotient ? widened / factor : widened * factor;
      if constexpr (!kPlain) value = limited(value, rounding);
      std::uint32_t code = encode_as<kFormat>(value);
      if constexpr (!kPlain) code = fixed_code(code, value, rounding.fixes);
      codes[first + i] = static_cast<std::uint8_t>(code);
    }
  });
}

struct Call {
  RowOfX row;
  BlockCode::Operation operation;
  bool plain;
  Rounding rounding;
  std::int64_t block;
  const float* factors;
  std::uint8_t* codes;
};

template <class X, Format kFormat>
ASSAY_INLINE void encode_row_as(const Call& call) {
  using enum BlockCode::Operation;
  const auto run = [&]<BlockCode::Operation kOperation, bool kPlain>() ASSAY_INLINE_BODY {
    encode_row<X, kFormat, kOperation, kPlain>(static_cast<const typename X::Storage*>(call.row.x), call.row.columns, call.block,
                                               call.factors, call.rounding, call.codes);
  };
  if (call.operation == quotient)
    return call.plain ? run.template operator()<quotient, true>() : run.template operator()<quotient, false>();
  return call.plain ? run.template operator()<product, true>() : run.template operator()<product, false>();
}

// One function for each type of x, for which the loader picks an instruction set.
template <class X>
ASSAY_INLINE void encode_row_of(Format output, const Call& call) {
  switch (output) {
    case Format::e4m3: return encode_row_as<X, Format::e4m3>(call);
    case Format::e5m2: return encode_row_as<X, Format::e5m2>(call);
    case Format::e2m1: return encode_row_as<X, Format::e2m1>(call);
    case Format::e3m2: return encode_row_as<X, Format::e3m2>(call);
    default: return encode_row_as<X, Format::e2m3>(call);
  }
}

ASSAY_CLONES void encode_row_of_bf16(Format output, const Call& call) { encode_row_of<Bf16>(output, call); }
ASSAY_CLONES void encode_row_of_f16(Format output, const Call& call) { encode_row_of<F16>(output, call); }
ASSAY_CLONES void encode_row_of_f32(Format output, const Call& call) { encode_row_of<F32>(output, call); }

bool is_call(const FormulaStep& step, FormulaFunction function) {
  return step.op == FormulaOp::call && static_cast<FormulaFunction>(step.index) == function;
}

// The limits that pairs of a constant and max or min at the end of `code` are.
bool add_limits(std::span<const FormulaStep> steps, BlockCode& code) {
  if (steps.size() > 4 || steps.size() % 2 != 0) return false;
  bool has_lower = false, has_upper = false;
  for (std::size_t s = 0; s < steps.size(); s += 2) {
    const float limit = steps[s].value;
    const bool lower = is_call(steps[s + 1], FormulaFunction::maximum), upper = is_call(steps[s + 1], FormulaFunction::minimum);
    if (steps[s].op != FormulaOp::constant || limit != limit || !(lower || upper) || (lower ? has_lower : has_upper))
      return false;
    if (s == 0) code.nan = limit;
    (lower ? code.lower : code.upper) = limit;
    (lower ? has_lower : has_upper) = code.limited = true;
  }
  return code.lower <= code.upper;  // so that their order does not matter
}

}  // namespace

void accumulate_block_ranks(AmaxNan nan, const RowOfX& row, std::int64_t block, std::int32_t* ranks) {
  ranks_of_row(nan, row.type, row.x, row.columns, block, ranks);
}

std::optional<BlockCode> block_code(std::span<const FormulaStep> steps) {
  if (steps.size() < 3 || steps[0].op != FormulaOp::variable || steps[1].op != FormulaOp::variable) return std::nullopt;
  const bool x_first = steps[0].index == kElement;
  const bool product = steps[2].op == FormulaOp::multiply, quotient = steps[2].op == FormulaOp::divide && x_first;
  if (x_first == (steps[1].index == kElement) || !(product || quotient)) return std::nullopt;
  BlockCode code;
  code.operation = product ? BlockCode::Operation::product : BlockCode::Operation::quotient;
  code.factor = x_first ? steps[1].index : steps[0].index;
  if (!add_limits(steps.subspan(3), code)) return std::nullopt;
  return code;
}

void encode_blocks(const RowOfX& row, const BlockCode& code, const CodeRounder& rounder, std::int64_t block, const float* factors,
                   std::uint8_t* codes) {
  const Rounding rounding{rounder.fixes(), code.lower, code.upper, code.limited ? float_bits(code.nan) : kQuietNan};
  const Call call{row, code.operation, rounder.is_usual() && !code.limited, rounding, block, factors, codes};
  const auto encode = row.type == Format::bf16  ? encode_row_of_bf16
                      : row.type == Format::f16 ? encode_row_of_f16
                                                : encode_row_of_f32;
  encode(rounder.format(), call);
}

}  // namespace assay::fast
