#include "conformance/generate/fused_ties.h"

#include <bit>
#include <cmath>

#include "conformance/support/counter_random.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"

namespace assay::conformance::inputs {
namespace {

// Bits of a value, the implicit one too.
int precision_of(Format type) { return type == Format::bf16 ? 8 : type == Format::f16 ? 11 : 24; }

std::uint32_t code_of(Format type, float exact) {
  if (type == Format::bf16) return scalar::encode_bf16(exact);
  if (type == Format::f16) return scalar::encode_f16(exact);
  return std::bit_cast<std::uint32_t>(exact);
}

// An odd number of [first, last].
std::uint64_t odd_of(std::uint64_t first, std::uint64_t last, std::uint32_t word) {
  const std::uint64_t low = first | 1, count = last < low ? 1 : (last - low) / 2 + 1;
  return low + word % count * 2;
}

}  // namespace

FusedTies fused_ties(Format type, const std::vector<std::int64_t>& row_map, std::int64_t topk, std::int64_t permuted_rows,
                     std::int64_t columns, std::uint64_t seed) {
  const int bits = precision_of(type);
  FusedTies made{std::vector<std::uint32_t>(static_cast<std::size_t>(permuted_rows * columns)),
                 std::vector<float>(row_map.size())};
  const CounterRandom random(seed, "fused_ties");
  for (std::size_t choice = 0; choice < row_map.size(); ++choice) {
    const bool tiny = static_cast<std::int64_t>(choice) % topk == 0;
    // weight * value is odd and has bits + 1 bits
    const std::uint64_t weight = odd_of(3, (std::uint64_t{1} << (bits / 2 + 1)) - 1, random.words(choice)[0]);
    made.weights[choice] = tiny ? 1.0f : static_cast<float>(weight);
    const std::int64_t row = row_map[choice];
    if (row < 0) continue;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto words = random.words((std::uint64_t{choice} + 1) << 32 | static_cast<std::uint64_t>(column));
      const float sign = words[1] & 1 ? -1.0f : 1.0f;
      float value = 0;
      if (tiny) {  // far below the last bit of the product: in f16 below that of f32, else below that of double as well
        const int exponent = type == Format::f16 ? -22 + static_cast<int>(words[0] % 4) : -80 + static_cast<int>(words[0] % 72);
        value = sign * std::ldexp(static_cast<float>(4 + words[2] % 4), exponent - 2);
      } else {
        const std::uint64_t low = std::uint64_t{1} << bits;
        const auto odd = static_cast<float>(odd_of((low + weight - 1) / weight, (2 * low - 1) / weight, words[0]));
        value = sign * std::ldexp(odd, -static_cast<int>(words[3] % 12));  // products above 1 and below
      }
      made.codes[static_cast<std::size_t>(row * columns + column)] = code_of(type, value);
    }
  }
  return made;
}

}  // namespace assay::conformance::inputs
