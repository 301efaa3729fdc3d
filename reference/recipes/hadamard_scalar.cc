#include <bit>

#include "reference/arithmetic/tensor_core.h"
#include "reference/formats/bf16.h"
#include "reference/recipes/hadamard.h"

namespace assay::scalar {

std::array<std::uint16_t, 16> hadamard_transform(std::uint16_t sign_mask, std::span<const std::uint16_t> x) {
  static const TensorCoreUnit& unit = *find_tensor_core_unit("sm90.wgmma.f16");
  constexpr std::uint32_t kQuarter = 0x3e80, kMinusQuarter = 0xbe80;  // +-0.25 in bf16

  std::array<std::uint32_t, 16> terms = {};
  for (std::size_t i = 0; i < x.size(); ++i) terms.at(i) = x[i];

  std::array<std::uint16_t, 16> y;
  for (unsigned j = 0; std::uint16_t & rounded : y) {
    std::array<std::uint32_t, 16> factors;
    for (unsigned i = 0; std::uint32_t & factor : factors) {
      const bool negative = ((sign_mask >> i & 1) + std::popcount(i & j)) % 2 == 1;
      factor = negative ? kMinusQuarter : kQuarter;
      ++i;
    }
    const std::uint32_t sum = tensor_core_step(unit, Format::bf16, terms, Format::bf16, factors, 0);
    rounded = encode_bf16(std::bit_cast<float>(sum));
    ++j;
  }
  return y;
}

}  // namespace assay::scalar
