#include "reference/recipes/swiglu.h"

#include <cmath>
#include <vector>

#include "reference/approximations/approximations.h"
#include "reference/formats/fast_codes.h"
#include "reference/support/simd.h"

namespace assay::fast {
namespace {

// silu of every code of the type. The quotient has both sides divided by 4, which is exact for gates of 16 bits: with that
// rcp reaches every 1 + e, up to 2^128, and no operand has to be looked at. A power below 2^-126 is nothing beside 1.
std::vector<std::uint16_t> silu_of_all(Format type) {
  std::vector<std::uint16_t> table(1 << 16);
  for (std::uint32_t code = 0; code < table.size(); ++code) {
    const auto narrow = static_cast<std::uint16_t>(code);
    const float gate = type == Format::bf16 ? widen_bf16(narrow) : widen_f16(narrow);
    const float power = ex2_approx_ftz(gate * -0x1.715476p0f);
    const float silu = gate * 0.25f * rcp_approx_ftz(std::fma(power, 0.25f, 0.25f));
    table[code] = type == Format::bf16 ? encode_bf16(silu) : encode_f16(silu);
  }
  return table;
}

const std::uint16_t* silu_table(Format type) {
  if (type == Format::bf16) {
    static const std::vector<std::uint16_t> bf16 = silu_of_all(Format::bf16);
    return bf16.data();
  }
  static const std::vector<std::uint16_t> f16 = silu_of_all(Format::f16);
  return f16.data();
}

ASSAY_CLONES void multiply_bf16(const std::uint16_t* __restrict h, const std::uint16_t* __restrict up, int count,
                                std::uint16_t* __restrict x) {
  for (int i = 0; i < count; ++i) x[i] = encode_bf16(widen_bf16(h[i]) * widen_bf16(up[i]));
}
ASSAY_CLONES void multiply_f16(const std::uint16_t* __restrict h, const std::uint16_t* __restrict up, int count,
                               std::uint16_t* __restrict x) {
  for (int i = 0; i < count; ++i) x[i] = encode_f16(widen_f16(h[i]) * widen_f16(up[i]));
}

}  // namespace

Tile swiglu_tile(Format type, const void* given, std::int64_t gate, std::int64_t columns, int tile_rows, int tile_columns,
                 SwigluTile& memory) {
  const std::uint16_t* const silu = silu_table(type);
  const auto* row = static_cast<const std::uint16_t*>(given) + gate;
  for (int r = 0; r < tile_rows; ++r, row += 2 * columns) {
    std::uint16_t h[kTile];
    for (int c = 0; c < tile_columns; ++c) h[c] = silu[row[c]];
    const auto multiply = type == Format::bf16 ? multiply_bf16 : multiply_f16;
    multiply(h, row + columns, tile_columns, memory.x[r]);
  }
  return {type, memory.x, kTile, tile_rows, tile_columns, nullptr};
}

}  // namespace assay::fast
